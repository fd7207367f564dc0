// Numbers that vectors are loaded from, from the boundary of a cache line on; large ones on huge pages where the kernel has them. Moves, does not
// grow. Threads: as a value.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "shoal/core/huge_pages.h"

namespace shoal::learn::topic {

template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::size_t size) : size_(size) {  // zeros
    constexpr std::size_t line = 64;
    const std::size_t whole = (size * sizeof(T) + line - 1) / line * line;
    if (whole == 0) return;
    void* const memory = whole >= kHugePage ? allocate_huge(whole) : std::aligned_alloc(line, whole);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, whole);
    data_.reset(static_cast<T*>(memory));
  }
  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace shoal::learn::topic

// Numbers that vectors are loaded from, from the boundary of a cache line on; large ones on huge pages where the kernel has them. Moves, does not
// grow. Threads: as a value.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace shoal::learn::topic {

template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::size_t size) : size_(size) {  // zeros
    constexpr std::size_t huge = std::size_t{2} << 20;
    const std::size_t bytes = size * sizeof(T), boundary = bytes >= huge ? huge : 64;
    const std::size_t whole = (bytes + boundary - 1) / boundary * boundary;
    if (whole == 0) return;
    void* memory = std::aligned_alloc(boundary, whole);
    if (memory == nullptr) throw std::bad_alloc();
    if (boundary == huge) madvise(memory, whole, MADV_HUGEPAGE);
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

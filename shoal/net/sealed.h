// Files of memory that several processes map, and that none of them can cut short: who could would end the others at their next access.
// Values that move; threads: one.
#pragma once

#include <cstddef>
#include <utility>

#include "shoal/net/descriptor.h"

namespace shoal::net {

// A new one of zeros, which keeps its size. Empty where the system gives no such memory; errno says why.
Descriptor sealed_file(const char* name, std::size_t bytes);

// All of one that some process made.
class SealedMapping {
 public:
  enum class Access { read, write };
  SealedMapping() = default;
  // Nothing if it cannot be mapped, has another size or could be cut short.
  SealedMapping(int file, std::size_t bytes, Access access);
  SealedMapping(SealedMapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  SealedMapping& operator=(SealedMapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SealedMapping();
  explicit operator bool() const { return at_ != nullptr; }
  std::byte* at() const { return at_; }

  void keep_from_children() const;    // that are forked
  void keep_from_core_files() const;  // which would be as large

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace shoal::net

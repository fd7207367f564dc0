// A buffer for one unit's result, packed input or gathered rows; 64-byte aligned for the SIMD loops, made when first needed and anew when
// more is asked for. Shared, because a user may hold a result longer than the exchange or its plan lives. What is sent from it lies, where the
// transport has such memory, where members of this host read it in place (net/arena.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "shoal/core/error.h"
#include "shoal/net/transport.h"

namespace shoal::exchange {

class Buffer {
 public:
  static constexpr std::uint64_t kLeastLent = 16 << 10;  // it comes in whole pages, and each frame from it says where it lies

  Buffer() = default;                                                  // of what nobody sends
  explicit Buffer(net::Transport& transport) : lender_(&transport) {}  // which outlives it, but not what it shares

  // Throws Error{io} where there is no memory.
  std::byte* get(std::uint64_t bytes) {
    if (memory_ && bytes <= bytes_) return memory_.get();
    memory_ = lender_ && bytes >= kLeastLent ? lender_->lendable(bytes) : nullptr;
    if (!memory_) memory_ = ordinary(bytes);
    bytes_ = bytes;
    return memory_.get();
  }
  bool holds(const void* p, std::uint64_t bytes) const {
    const auto* b = static_cast<const std::byte*>(p);
    return memory_ && b >= memory_.get() && b < memory_.get() + bytes;
  }
  std::shared_ptr<const void> share() const { return memory_; }
  bool is_shared() const { return memory_.use_count() > 1; }
  void let_go() {
    memory_.reset();
    bytes_ = 0;
  }

 private:
  static std::shared_ptr<std::byte> ordinary(std::uint64_t bytes) {
    auto* fresh = new (std::align_val_t{64}, std::nothrow) std::byte[std::max<std::uint64_t>(bytes, 1)];
    if (!fresh) throw Error(Code::io, "out of memory: " + std::to_string(bytes) + " bytes for the exchange of gradients");
    return {fresh, [](std::byte* p) { ::operator delete[](p, std::align_val_t{64}); }};
  }

  net::Transport* lender_ = nullptr;
  std::shared_ptr<std::byte> memory_;
  std::uint64_t bytes_ = 0;
};

// Memory for one result after another, which is never that in which the next input lies, nor that of a result that somebody still holds.
class Results {
 public:
  Results() = default;
  explicit Results(net::Transport& transport) : buffers_{Buffer(transport), Buffer(transport)} {}

  void begin() { slot_ = buffers_[0].is_shared() ? 1 : 0; }
  void avoid(const void* input, std::uint64_t bytes) {
    if (buffers_[slot_].holds(input, bytes)) slot_ = 1 - slot_;
  }
  std::byte* get(std::uint64_t bytes) {
    if (buffers_[slot_].is_shared()) buffers_[slot_].let_go();
    return buffers_[slot_].get(bytes);
  }
  std::shared_ptr<const void> share() const { return buffers_[slot_].share(); }

 private:
  Buffer buffers_[2];
  int slot_ = 0;
};

// What a member contributes that has nothing.
class Zeros {
 public:
  const std::byte* get(std::uint64_t bytes) {
    std::byte* const memory = buffer_.get(bytes);
    if (bytes > filled_) std::fill_n(memory, filled_ = bytes, std::byte{0});  // all of it: more memory is other memory
    return memory;
  }

 private:
  Buffer buffer_;
  std::uint64_t filled_ = 0;
};

}  // namespace shoal::exchange

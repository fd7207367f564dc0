// One unit on its way through an iteration, and the memory it needs. Internal to exchange.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/exchange/gate.h"

namespace shoal::exchange {

// Memory for one unit's result or packed input; 64-byte aligned for the SIMD loops, made when first needed. Shared, because
// a user may hold a result longer than the exchange or its plan lives.
class Arena {
 public:
  // Throws Error{io} where there is no memory.
  std::byte* get(std::uint64_t bytes) {
    if (memory_) return memory_.get();
    auto* fresh = new (std::align_val_t{64}, std::nothrow) std::byte[std::max<std::uint64_t>(bytes, 1)];
    if (!fresh) throw Error(Code::io, "out of memory: " + std::to_string(bytes) + " bytes for the mean of gradients");
    memory_.reset(fresh, Free());
    return memory_.get();
  }
  bool holds(const void* p, std::uint64_t bytes) const {
    const auto* b = static_cast<const std::byte*>(p);
    return memory_ && b >= memory_.get() && b < memory_.get() + bytes;
  }
  std::shared_ptr<const void> share() const { return memory_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::shared_ptr<std::byte[]> memory_;
};

// One unit on its way. The caller's thread fills it while `open`; once it has been posted to the loop the loop
// owns it until its gate opens.
struct Flow {
  explicit Flow(Gate::Version arrived) : gate(arrived) {}

  std::uint64_t bytes = 0, elements = 0;
  std::string label;
  std::uint32_t event_name = 0;
  Arena packed, results[2];
  std::vector<std::uint64_t> offset;  // bytes, by place in the unit
  const collective::Verified* program = nullptr;
  collective::Layout layout;

  Gate gate;                          // of all its tensors: they arrive together

  // This iteration's.
  std::size_t missing = 0;            // tensors neither produced nor absent yet
  const std::byte* input = nullptr;
  int slot = 0;                       // which of results[]
  std::byte* output = nullptr;        // its memory
  Instant produced_at{};
};

}  // namespace shoal::exchange

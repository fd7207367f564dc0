// One unit on its way through an iteration, and the memory it needs. Internal to exchange.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/core/time.h"
#include "shoal/exchange/arena.h"
#include "shoal/exchange/factor_flow.h"
#include "shoal/exchange/gate.h"

namespace shoal::exchange {

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
  std::unique_ptr<FactorFlow> factors;  // the way is by factors: instead of program, layout, packed and results
  std::uint64_t operation = 0;        // its first, in an iteration's

  Gate gate;                          // of all its tensors: they arrive together

  // This iteration's.
  std::size_t missing = 0;            // tensors neither produced nor absent yet
  const std::byte* input = nullptr;
  factor::Pair pair;                  // by factors
  int slot = 0;                       // which of results[]
  std::byte* output = nullptr;        // its memory
  Instant produced_at{};
};

}  // namespace shoal::exchange

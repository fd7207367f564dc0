// A single member has nothing to exchange; where its run is recorded, its compute still shows in the report: forward,
// backward and optimizer of each step as events.
//
// A step, as the wrapper in Python (or a libtorch program) drives it:
//   forward_begins(); y = model(x); forward_ends(y); y.backward(); step_begins(); optimizer.step(); step_ends()
//
// Threads: one at a time, as DataParallel.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "shoal/core/time.h"

namespace shoal::nn {

class Alone {
 public:
  void forward_begins(double samples = 0);  // 0: not known
  // `output`: the tensor from which backward will start, if there is one; several forwards of a step count each.
  void forward_ends(const std::optional<at::Tensor>& output);
  void step_begins();
  void step_ends();

 private:
  const std::shared_ptr<Instant> backward_began_ = std::make_shared<Instant>();  // shared with hooks in graphs, which may outlive us
  Instant forward_began_{}, step_began_{};
  double samples_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace shoal::nn

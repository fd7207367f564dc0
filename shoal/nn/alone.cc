#include "shoal/nn/alone.h"

#include "shoal/core/event.h"
#include "shoal/nn/before_node.h"

namespace shoal::nn {
namespace {

void span(EventKind kind, Instant begin, Instant end, std::int64_t step, double value = 0) {
  Events::local().record({kind, begin, end, step, -1, value, 0});
}

}  // namespace

void Alone::forward_begins(double samples) {
  samples_ = samples;
  forward_began_ = steady_now();
}

void Alone::forward_ends(const std::optional<at::Tensor>& output) {
  span(EventKind::forward, forward_began_, steady_now(), step_, samples_);
  if (!output || !output->grad_fn()) return;
  before_node(*output->grad_fn(), [began = backward_began_] { *began = steady_now(); });
}

void Alone::step_begins() {
  step_began_ = steady_now();
  if (*backward_began_ == Instant{}) return;
  span(EventKind::backward, *backward_began_, step_began_, step_);
  *backward_began_ = {};
}

void Alone::step_ends() {
  span(EventKind::optimizer, step_began_, steady_now(), step_);
  ++step_;
}

}  // namespace shoal::nn

// What the parts of an iteration usually take, on this member and on whichever is the slowest: of the latest iterations, without the first, which warms
// everything up, the medians. So a pause between two of them (a validation, a checkpoint, another job's turn) does not count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "shoal/core/time.h"
#include "shoal/exchange/took.h"

namespace shoal::nn {

class Pace {
 public:
  // The first forward pass since the last iteration; waited: seconds that this member has spent waiting for others so far, which passes are told without;
  // processor: those that its process has had of processors so far.
  void iteration_begins(Instant now, double waited, double processor) {
    if (began_ != Instant{}) {
      const double whole = Seconds(now - began_).count(), passes = forward_.latest + backward_.latest;
      between_.took(std::max(0.0, whole - passes - std::max(0.0, waited - waited_)));  // who waits for other members begins anew at 0
      processor_.took(processor - processor_before_);
      placing_.took(std::min(placing_now_, between_.latest));
      latest_ = {forward_.latest, backward_.latest, between_.latest, processor_.latest, placing_.latest};
    }
    placing_now_ = 0;
    began_ = now;
    waited_ = waited;
    processor_before_ = processor;
  }
  void forward_took(double seconds) { forward_.took(seconds); }
  void backward_took(double seconds) { backward_.took(seconds); }
  void placing_took(double seconds) { placing_now_ += seconds; }  // in parts
  // Of an iteration of all members (Exchange::slowest()); without its passes nobody has said so.
  void slowest_took(const exchange::Took& took) {
    if (took.forward + took.backward <= 0) return;
    slowest_forward_.took(took.forward);
    slowest_backward_.took(took.backward);
    slowest_between_.took(took.between);
    slowest_processor_.took(took.processor);
    slowest_placing_.took(took.placing);
  }

  // Seconds; 0 where there was none.
  double forward() const { return forward_.value(); }
  double backward() const { return backward_.value(); }
  double latest_backward() const { return backward_.latest; }
  // between: passes, the optimizer's step and what the script does; processor: by all threads.
  exchange::Took usual() const { return {forward(), backward(), between_.value(), processor_.value(), placing_.value()}; }
  exchange::Took latest() const { return latest_; }  // of the last iteration that is over
  exchange::Took usual_of_slowest() const {          // of each iteration another one; the own ones where nobody has told
    if (slowest_forward_.count == 0) return usual();
    return {slowest_forward_.value(), slowest_backward_.value(), slowest_between_.value(), slowest_processor_.value(), slowest_placing_.value()};
  }

 private:
  struct Usual {
    double latest = 0;
    std::array<double, 15> kept{};  // the latest, without the first of all
    std::size_t count = 0;          // of all
    void took(double seconds) {
      latest = seconds;
      if (count++ > 0) kept[(count - 2) % kept.size()] = seconds;
    }
    double value() const {
      if (count < 2) return latest;
      auto sorted = kept;
      const std::span values(sorted.data(), std::min(count - 1, kept.size()));
      std::ranges::sort(values);
      return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
    }
  };
  Usual forward_, backward_, between_, processor_, placing_;
  Usual slowest_forward_, slowest_backward_, slowest_between_, slowest_processor_, slowest_placing_;
  exchange::Took latest_;
  Instant began_{};
  double waited_ = 0, processor_before_ = 0, placing_now_ = 0;
};

}  // namespace shoal::nn

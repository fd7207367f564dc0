// What the parts of an iteration usually take on this member: medians of its latest iterations, without the first, which warms everything up. So a pause
// between two of them (a validation, a checkpoint, another job's turn) does not count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "shoal/core/time.h"

namespace shoal::nn {

class Pace {
 public:
  // The first forward pass since the last iteration; waited: seconds that this member has spent waiting for others so far, which passes are told without;
  // processor: those that its process has had of processors so far.
  void iteration_begins(Instant now, double waited, double processor) {
    if (began_ != Instant{}) {
      const double whole = Seconds(now - began_).count();
      passes_ = forward_.latest + backward_.latest;
      between_.took(std::max(0.0, whole - passes_ - (waited - waited_)));
      processor_.took(processor - processor_before_);
    }
    began_ = now;
    waited_ = waited;
    processor_before_ = processor;
  }
  void forward_took(double seconds) { forward_.took(seconds); }
  void backward_took(double seconds) { backward_.took(seconds); }
  // Of an iteration of all members, what it took of who took longest; 0: nobody has said so.
  void slowest_took(double passes, double between) {
    if (passes <= 0) return;
    slowest_passes_.took(passes);
    slowest_between_.took(between);
  }

  // Seconds; 0 where there was none.
  double forward() const { return forward_.value(); }
  double backward() const { return backward_.value(); }
  double between() const { return between_.value(); }  // passes: the optimizer's step and what the script does
  double processor() const { return processor_.value(); }  // of an iteration, by all its threads
  double slowest_passes() const { return slowest_passes_.value(); }
  double slowest_between() const { return slowest_between_.value(); }
  double latest_backward() const { return backward_.latest; }
  // Of the last iteration that is over; 0: there is none.
  double latest_passes() const { return passes_; }
  double latest_between() const { return between_.latest; }

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
  Usual forward_, backward_, between_, processor_, slowest_passes_, slowest_between_;
  Instant began_{};
  double waited_ = 0, processor_before_ = 0, passes_ = 0;
};

}  // namespace shoal::nn

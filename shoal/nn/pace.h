// What the parts of an iteration take on this member: averages over its iterations, without the first, which warms everything up.
#pragma once

#include <algorithm>

#include "shoal/core/time.h"

namespace shoal::nn {

class Pace {
 public:
  // The first forward pass since the last iteration; waited: seconds that this member has spent waiting for others so far, which passes are told without.
  void iteration_begins(Instant now, double waited) {
    if (began_ != Instant{}) {
      const double whole = Seconds(now - began_).count();
      between_.took(std::max(0.0, whole - forward_.latest - backward_.latest - (waited - waited_)));
    }
    began_ = now;
    waited_ = waited;
  }
  void forward_took(double seconds) { forward_.took(seconds); }
  void backward_took(double seconds) { backward_.took(seconds); }

  // Seconds; 0 where there was none.
  double forward() const { return forward_.value(); }
  double backward() const { return backward_.value(); }
  double between() const { return between_.value(); }  // passes: the optimizer's step and what the script does
  double latest_backward() const { return backward_.latest; }

 private:
  struct Average {
    double latest = 0, sum = 0;  // the sum without the first
    int count = 0;
    void took(double seconds) {
      latest = seconds;
      if (count++ > 0) sum += seconds;
    }
    double value() const { return count > 1 ? sum / (count - 1) : latest; }
  };
  Average forward_, backward_, between_;
  Instant began_{};
  double waited_ = 0;
};

}  // namespace shoal::nn

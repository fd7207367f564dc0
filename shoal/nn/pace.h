// What the parts of an iteration take on this member: the least of its iterations so far, since whatever disturbs one makes it longer.
#pragma once

#include <algorithm>

#include "shoal/core/time.h"

namespace shoal::nn {

class Pace {
 public:
  // The first forward pass since the last iteration; waited: seconds that this member has spent waiting for means so far.
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
  double forward() const { return forward_.least; }
  double backward() const { return backward_.least; }
  double between() const { return between_.least; }  // passes, without waiting: the optimizer's step and what the script does
  double latest_backward() const { return backward_.latest; }

 private:
  struct Least {
    double latest = 0, least = 0;
    void took(double seconds) {
      least = least > 0 ? std::min(least, seconds) : seconds;
      latest = seconds;
    }
  };
  Least forward_, backward_, between_;
  Instant began_{};
  double waited_ = 0;
};

}  // namespace shoal::nn

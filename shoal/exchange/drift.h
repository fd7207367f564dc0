// When a plan no longer fits what is measured, and what becomes of it then. Pure: by iterations, without a clock.
//
// A plan is fitted to other links without a change to any bit of what it gives: the same units, and where they are added in rank order another
// way that adds so too; slices and the order of leaving are free. So a run that was fitted anew is replayed by either plan.
#pragma once

#include <cstddef>
#include <vector>

#include "shoal/exchange/plan.h"

namespace shoal::exchange {

// Watches what training waits for. A window is kWindow iterations, told by its median: one late iteration says nothing. The first window
// after a fit is what the plan is like; when `patience` windows in a row lie off by more than kMatters of an iteration, all above or all
// below, the links have changed. Each fit doubles the patience: what comes and goes is not followed for ever.
class Drift {
 public:
  static constexpr std::size_t kWindow = 32;
  static constexpr double kMatters = 0.2;
  static constexpr int kMostPatience = 64;

  explicit Drift(double iteration_seconds) : iteration_seconds_(iteration_seconds) {}

  // After each iteration, with the seconds that the caller waited in it. True: fit the plan anew, and call fitted().
  bool after(double waited);
  void fitted();
  void expects(double iteration_seconds) { iteration_seconds_ = iteration_seconds; }  // the plan predicts so now

 private:
  double iteration_seconds_;        // as the plan predicts it: what a difference is held against
  std::vector<double> window_;
  double usual_ = -1;               // of the first window; -1: not yet
  int off_ = 0;                     // windows in a row that were off, below zero: that waited less
  int patience_ = 2;
};

// The same bits on other links.
ExchangePlan fitted_to(ExchangePlan plan, const collective::LinkModel& link);

}  // namespace shoal::exchange

// What the parts of an iteration usually take, on this member and on whichever is the slowest: of the latest iterations, without the first, which warms
// everything up, the medians. So a pause between two of them (a validation, a checkpoint, another job's turn) does not count. And when in the backward pass each
// gradient is there, which the plan has changed: of a layer that goes by its factors before what would have been its product.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/exchange/took.h"

namespace shoal::nn {

class Pace {
 public:
  // The first forward pass since the last iteration; waited: seconds that this member has spent waiting for others so far, which passes are told without;
  // processor: those that its process has had of processors so far.
  void iteration_begins(Instant now, double waited, double processor) {
    iteration_took(now, waited, processor);
    placing_now_ = placing_before_ = 0;
    began_ = now;
    waited_ = waited;
    processor_before_ = processor;
  }
  // Behind the step, where no more is known than of the first iteration: what this one has taken until now, without what a script does before the next. Behind the
  // very first one it is the cold one's.
  void step_ends(Instant now, double waited, double processor) {
    if (own_.between.count > 1) return;
    iteration_took(now, waited, processor);
    began_ = {};
  }
  // A forward pass: what is placed in it, behind its gates, is none of its seconds.
  void forward_begins() { placing_before_ = placing_now_; }
  void forward_took(double seconds) { own_.forward.took(seconds - (placing_now_ - placing_before_)); }
  // whole: with what was waited in it; gradients_at: seconds of this, by parameter, negative for one that came behind it or not at all. Shares of the whole are
  // kept, as if what was waited lay evenly in it.
  void backward_took(double seconds, double whole, std::span<const double> gradients_at) {
    own_.backward.took(seconds);
    produced_.resize(gradients_at.size());
    for (std::size_t i = 0; i < gradients_at.size(); ++i) produced_[i].took(gradients_at[i] < 0 || whole <= 0 ? 1 : std::min(1.0, gradients_at[i] / whole));
  }
  void placing_took(double seconds) { placing_now_ += seconds; }  // in parts
  // Of an iteration of all members (Exchange::slowest()); without its passes nobody has said so.
  void slowest_took(const exchange::Took& took) {
    if (took.forward + took.backward > 0) slowest_.took(took);
  }

  // Seconds; 0 where there was none.
  double latest_backward() const { return own_.backward.latest; }
  exchange::Took latest() const { return latest_; }  // of the last iteration that is over
  exchange::Took usual() const { return own_.value(); }
  // By parameter, of the backward pass until its gradient is there: 0 to 1.
  std::vector<double> usual_of_gradients() const {
    std::vector<double> shares;
    for (const auto& gradient : produced_) shares.push_back(gradient.value());
    return shares;
  }
  // Of each iteration another member's; the own ones where nobody has told.
  exchange::Took usual_of_slowest() const { return slowest_.forward.count > 0 ? slowest_.value() : usual(); }

 private:
  void iteration_took(Instant now, double waited, double processor) {
    if (began_ == Instant{}) return;
    const double whole = Seconds(now - began_).count(), passes = own_.forward.latest + own_.backward.latest;
    own_.waited.took(std::max(0.0, waited - waited_));  // who waits for other members begins anew at 0
    own_.between.took(std::max(0.0, whole - passes - own_.waited.latest));
    own_.processor.took(processor - processor_before_);
    own_.placing.took(std::min(placing_now_, own_.between.latest));
    latest_ = {own_.forward.latest, own_.backward.latest, own_.between.latest, own_.processor.latest, own_.placing.latest, own_.waited.latest};
  }

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
  struct Parts {  // of Took
    Usual forward, backward, between, processor, placing, waited;
    void took(const exchange::Took& whole) {
      forward.took(whole.forward);
      backward.took(whole.backward);
      between.took(whole.between);
      processor.took(whole.processor);
      placing.took(whole.placing);
      waited.took(whole.waited);
    }
    exchange::Took value() const { return {forward.value(), backward.value(), between.value(), processor.value(), placing.value(), waited.value()}; }
  };
  Parts own_, slowest_;  // own_.processor: by all threads of the process
  std::vector<Usual> produced_;
  exchange::Took latest_;
  Instant began_{};
  double waited_ = 0, processor_before_ = 0, placing_now_ = 0, placing_before_ = 0;
};

}  // namespace shoal::nn

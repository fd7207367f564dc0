// What learners without PyTorch have in common: all members learn together, epoch after epoch; after each the model may be kept, and learning
// goes on from a kept one. Every call is made by all members alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shoal/learn/tensor_file.h"

namespace shoal::learn {

// sigma, or sigma / sqrt(t) in the t-th epoch; t counts on within the epoch.
struct StepSize {
  double sigma = 0.1;
  bool decreasing = true;
  double at(double epochs_done) const { return decreasing ? sigma / std::sqrt(1 + epochs_done) : sigma; }
};

// What an epoch has come to. Figures and samples are those of all members; the times are this member's.
struct Epoch {
  unsigned number = 0;                                  // from 1
  std::vector<std::pair<std::string, double>> figures;  // by name: "held-out RMSE"
  std::uint64_t samples = 0;                            // that were learnt from
  double seconds = 0, waited = 0;                       // waited: of these, in calls of shared tables
  bool converged = false;                               // what was asked for is reached: more epochs are not needed
};

class Learner {
 public:
  virtual ~Learner() = default;
  // One epoch; `progressed` hears which part of it is done. Throws Error{invalid_argument} if numbers have grown out of bounds.
  virtual Epoch learn(const std::function<void(double part)>& progressed) = 0;
  // What was learnt, on rank 0; nothing elsewhere.
  virtual Tensors model() = 0;
  // What it has decided, and why: a sentence, or nothing. Another one after an epoch at whose end it decided anew.
  virtual std::string note() const { return ""; }
  // First values in place of the learner's own: those that rank 0 gives, named as in model(). After restore() has returned 0, before the first epoch. Throws
  // Error{mismatch} for tensors of another form, Error{unsupported} where the end does not depend on where it begins.
  virtual void begin_with(const Tensors& first) = 0;
  // Goes on from what rank 0 gives: `epochs` of them, 0 for none. Returns rank 0's `epochs` on all members.
  virtual unsigned restore(unsigned epochs, const Tensors& model) = 0;
};

}  // namespace shoal::learn

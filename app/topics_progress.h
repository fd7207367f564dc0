// The bar of a topic model's training: how far it is, how fast, how good it was when it was looked at last, what it takes, what is left.
// Threads: one at a time.
#pragma once

#include <string>

#include "app/progress.h"
#include "shoal/core/time.h"
#include "shoal/learn/topic/training.h"

namespace shoal::app {

// What the bar says before itself.
struct TrainingNow {
  unsigned sweep = 0, sweeps = 0;
  double rate = 0;  // tokens/s; 0: not known yet
  double log_likelihood = 0;  // a token; 0: not looked yet
  double perplexity = 0;  // of what is held out; 0: not looked yet, or nothing is
  double memory = 0;  // bytes of this process
  double left = 0;  // seconds; 0: not known yet
};
std::string sentence(const TrainingNow& now);
std::string show_left(double seconds);  // "12 s", "3 min", "2 h 05 min"

class TrainingProgress {
 public:
  // tokens: of all members, that a sweep draws. begun: sweeps that are done.
  TrainingProgress(bool shown, double tokens, unsigned begun, unsigned sweeps);
  void at(unsigned sweep, double part);  // of that sweep so much is done
  void looked(const learn::topic::Look& look);
  void clear() { progress_.clear(); }

 private:
  Progress progress_;
  const double tokens_;
  TrainingNow now_;
  double since_;  // sweeps that were done at `began_`: speed is that since the last look, for sweeps become quicker
  Instant began_ = steady_now();
};

}  // namespace shoal::app

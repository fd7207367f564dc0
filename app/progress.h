// How far a long command has come, on its stderr: a bar on a terminal, elsewhere a line every ten seconds. Threads: one.
#pragma once

#include <string>

#include "shoal/core/time.h"

namespace shoal::app {

class Progress {
 public:
  explicit Progress(bool shown);  // or silent
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  // "epoch 3 of 10", and which part of it is done.
  void at(const std::string& what, double part);
  void clear();  // the bar gives way to a line

 private:
  bool shown_, terminal_, drawn_ = false;
  Instant last_;
};

}  // namespace shoal::app

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
  bool due() const;     // whether at() would show something now
  // "epoch 3 of 10", and which part of it is done. Where the terminal is narrow, the bar is short, and the text is cut.
  void at(const std::string& what, double part);
  void clear();  // the bar gives way to a line

 private:
  bool shown_, terminal_, drawn_ = false;
  Instant last_;
};

}  // namespace shoal::app

// Sees to it that nothing of a run outlives its launcher, however that ends: also by KILL, which it cannot answer.
//
// A small process in a session of its own that sleeps until the launcher is gone (the end of a pipe tells it), then kills
// whatever carries the run's mark in its environment: members die with the launcher anyhow, what they started does not.
// Made before the launcher has threads. The destructor dismisses it: by then nothing of the run may be left.
#pragma once

#include <sys/types.h>

#include <string>

#include "shoal/net/descriptor.h"

namespace shoal::app {

class Watcher {
 public:
  explicit Watcher(const std::string& mark);  // "NAME=value", as members have it
  ~Watcher();
  Watcher(const Watcher&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  net::Descriptor alive_;  // its other end sees the end of this process
};

}  // namespace shoal::app

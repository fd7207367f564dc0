// A thread for what the loop may not wait for: the disk, and functions that users wrote. Jobs run in the order in which they came.
// Threads: run() any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "shoal/core/time.h"

namespace shoal::table {

// What a leisurely thread leaves to others after a job for which it worked `own` of processor time, while its process had `all`, in so much time: twenty times as long
// where the others had a core all the time, nothing where they had none. The kernel alone does not see to it: who gives way is on a core for a few milliseconds
// all the same before another who has woken gets it, and where a virtual machine's disk takes its share of the cores, all of them stop.
Seconds rest_after(Seconds own, Seconds all, Seconds elapsed);

class JobThread {
 public:
  enum class Pace : std::uint8_t {
    prompt,                           // somebody waits for its jobs
    leisurely,                        // rests while others of its process compute
  };
  explicit JobThread(Pace pace = Pace::prompt) : pace_(pace) {}
  ~JobThread();                       // after all that it was given, without rests
  JobThread(const JobThread&) = delete;
  void run(std::function<void()> job);  // it throws nothing. The first one starts the thread

 private:
  void work();

  const Pace pace_;
  std::mutex mutex_;                  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace shoal::table

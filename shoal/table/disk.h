// A thread for what waits for the disk, so that nobody else does. Jobs run in the order in which they came. Threads: run() any.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace shoal::table {

class Disk {
 public:
  Disk() = default;
  ~Disk();                            // after all that it was given
  Disk(const Disk&) = delete;
  void run(std::function<void()> job);  // it throws nothing. The first one starts the thread

 private:
  void work();

  std::mutex mutex_;                  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace shoal::table

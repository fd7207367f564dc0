// A thread for what the loop may not wait for: the disk, and functions that users wrote. Jobs run in the order in which they came.
// Threads: run() any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace shoal::table {

class JobThread {
 public:
  enum class Pace : std::uint8_t {
    prompt,                           // somebody waits for its jobs
    leisurely,                        // leaves cores to others of its process while they compute
  };
  explicit JobThread(Pace pace = Pace::prompt) : pace_(pace) {}
  ~JobThread();                       // after all that it was given
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

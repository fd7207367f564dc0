// In which order a group's operations begin where some read the memory of a device: each when its copies have come to the host (staging.h), and none before those
// that were called earlier, so that all members keep one order. Where nothing is on its way an operation begins at once, on its caller's thread.
//
// Threads: any.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "shoal/nn/staging.h"

namespace shoal::nn {

class Departures : public std::enable_shared_from_this<Departures> {
 public:
  // What one operation waits for.
  struct Copies {
    std::size_t under_way = 0;
    std::exception_ptr fault;
  };
  // For Staging::to_host: one more of them.
  Staging::Arrived one_of(const std::shared_ptr<Copies>& copies);

  // begin: at once, and what it throws is thrown here; or later on a staging's thread. Then what it throws, or why a copy failed and it was not called, is
  // given to failed(), which throws nothing.
  void depart(std::shared_ptr<Copies> copies, std::function<void()> begin, std::function<void(std::exception_ptr)> failed);
  bool idle() const;                // an operation that reads the host's memory may begin past this

 private:
  struct Operation {
    std::shared_ptr<Copies> copies;
    std::function<void()> begin;
    std::function<void(std::exception_ptr)> failed;
  };
  void begin_those_that_are_here();

  mutable std::mutex mutex_;        // guards all below and every Copies
  std::deque<Operation> waiting_;
  bool beginning_ = false;          // by one thread; others leave theirs to it
};

}  // namespace shoal::nn

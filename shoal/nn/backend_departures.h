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

  // begin: at once, and what it throws is thrown here; or later on a staging's thread, after which, or in place of which where a copy failed, late(what went
  // wrong, else nullptr) is called there. collectives: how many sequence numbers it will take.
  void depart(std::shared_ptr<Copies> copies, std::size_t collectives, std::function<void()> begin, std::function<void(std::exception_ptr)> late);
  bool idle() const;                // an operation that reads the host's memory may begin past this
  std::size_t collectives() const;  // that are to begin

 private:
  struct Operation {
    std::shared_ptr<Copies> copies;
    std::size_t collectives;
    std::function<void()> begin;
    std::function<void(std::exception_ptr)> late;
  };
  void begin_those_that_are_here();

  mutable std::mutex mutex_;        // guards all below and every Copies
  std::deque<Operation> waiting_;
  std::size_t collectives_ = 0;
  bool beginning_ = false;          // by one thread; others leave theirs to it
};

}  // namespace shoal::nn

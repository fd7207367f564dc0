#include "shoal/nn/backend_departures.h"

#include <utility>

#include "shoal/nn/backend_completions.h"

namespace shoal::nn {

Staging::Arrived Departures::one_of(const std::shared_ptr<Copies>& copies) {
  const std::lock_guard lock(mutex_);
  ++copies->under_way;
  return [self = shared_from_this(), copies](const std::exception_ptr& fault) {
    {
      const std::lock_guard lock(self->mutex_);
      --copies->under_way;
      if (fault) copies->fault = fault;
    }
    self->begin_those_that_are_here();
  };
}

void Departures::depart(std::shared_ptr<Copies> copies, std::function<void()> begin, std::function<void(std::exception_ptr)> failed) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() || beginning_ || copies->under_way > 0 || copies->fault) {
      waiting_.push_back({std::move(copies), std::move(begin), std::move(failed)});
      begin = nullptr;
    }
  }
  begin ? begin() : begin_those_that_are_here();
}

bool Departures::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !beginning_;
}

void Departures::begin_those_that_are_here() {
  std::unique_lock lock(mutex_);
  if (std::exchange(beginning_, true)) return;
  while (!waiting_.empty() && waiting_.front().copies->under_way == 0) {
    Operation operation = std::move(waiting_.front());
    waiting_.pop_front();
    std::exception_ptr wrong = operation.copies->fault;
    lock.unlock();
    try {
      if (!wrong) operation.begin();
    } catch (...) {
      wrong = std::current_exception();
    }
    if (wrong) operation.failed(wrong);
    Completions::local().push([gone = std::move(operation)] {});  // it may hold a tensor for the last time, and so a user's code
    lock.lock();
  }
  beginning_ = false;
}

}  // namespace shoal::nn

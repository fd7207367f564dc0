#include "shoal/nn/backend_completions.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace shoal::nn {

struct Completions::State {
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMost = 256;  // threads; with so many callbacks waiting, the next does when one of them ends
  static constexpr auto kHeldUp = std::chrono::milliseconds(1);  // then what stands behind a callback goes on without it

  std::mutex mutex;                           // guards all below
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;    // as long as there are operations under way
  std::size_t running = 0, standby = 0;       // threads
  Clock::time_point last_taken;

  void start() {
    if (running + standby == kMost) return;
    ++standby;
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::system_error&) {
      --standby;  // no more threads: those that are there go on
    }
  }

  [[noreturn]] void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      while (queue.empty() || (running > 0 && Clock::now() < last_taken + kHeldUp)) {
        queue.empty() ? changed.wait(lock) : static_cast<void>(changed.wait_until(lock, last_taken + kHeldUp));
      }
      std::function<void()> fn = std::move(queue.front());
      queue.pop_front();
      last_taken = Clock::now();
      ++running;
      if (--standby == 0) start();
      lock.unlock();
      fn();
      fn = nullptr;  // what it holds may take its time too
      lock.lock();
      --running;
      ++standby;
    }
  }
};

Completions& Completions::local() {
  static Completions completions;
  return completions;
}

// Never freed: the threads may outlive every static object of the process.
Completions::State& Completions::state() {
  static State* const state = [] {
    auto* const fresh = new State;
    const std::lock_guard lock(fresh->mutex);
    fresh->start();
    return fresh;
  }();
  return *state;
}

void Completions::push(std::function<void()> fn) {
  State& target = state();
  {
    const std::lock_guard lock(target.mutex);
    target.queue.push_back(std::move(fn));
  }
  target.changed.notify_one();
}

}  // namespace shoal::nn

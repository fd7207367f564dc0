#include "shoal/nn/backend_completions.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace shoal::nn {

struct Completions::State {
  std::mutex mutex;                           // guards queue
  std::condition_variable filled;
  std::deque<std::function<void()>> queue;    // as long as there are operations under way

  [[noreturn]] void run() {
    for (;;) {
      std::function<void()> fn;
      {
        std::unique_lock lock(mutex);
        filled.wait(lock, [this] { return !queue.empty(); });
        fn = std::move(queue.front());
        queue.pop_front();
      }
      fn();
    }
  }
};

Completions& Completions::local() {
  static Completions completions;
  return completions;
}

// Never freed: the thread may outlive every static object of the process.
Completions::State& Completions::state() {
  static State* const state = [] {
    auto* const fresh = new State;
    std::thread([fresh] { fresh->run(); }).detach();
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
  target.filled.notify_one();
}

}  // namespace shoal::nn

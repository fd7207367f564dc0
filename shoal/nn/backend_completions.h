// Where c10d futures complete: a user's callbacks run there, and tensors whose last reference the loop held are freed
// there. One thread of the process does it, in order; while a callback keeps it (it may wait for another operation, whose
// completion then stands behind it), the next takes over. Threads start on demand, at most 256, and live as long as the
// process.
#pragma once

#include <functional>

namespace shoal::nn {

class Completions {
 public:
  static Completions& local();
  void push(std::function<void()> fn);  // any thread; run in order, but for what a callback holds up; fn must not throw

 private:
  Completions() = default;
  struct State;
  State& state();
};

}  // namespace shoal::nn

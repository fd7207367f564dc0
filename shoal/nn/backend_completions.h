// The one thread of a process on which c10d futures complete: a user's callbacks run there, and tensors whose last
// reference the loop held are freed there. It starts with the first use and lives as long as the process.
#pragma once

#include <functional>

namespace shoal::nn {

class Completions {
 public:
  static Completions& local();
  void push(std::function<void()> fn);  // any thread; run in order

 private:
  Completions() = default;
  struct State;
  State& state();
};

}  // namespace shoal::nn

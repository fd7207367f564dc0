// A run of a program as any thread but the loop sees it: begun now, waited for later.
//
// Lifetime: the runner outlives it. The memory of Buffers is in use until wait() has returned or thrown.
#pragma once

#include <memory>
#include <string>

#include "shoal/collective/run.h"

namespace shoal::collective {

inline constexpr Nanoseconds kAgrees = std::chrono::seconds(60);  // beyond an operation's patience, and far beyond any transport's JoinOptions::dead
// The loop stands still with the caller's memory in its hands: no way on is safe.
[[noreturn]] void end_process(const std::string& label);

class Started {
 public:
  Started(Runner& runner, const Verified& program, const Layout& layout, Buffers buffers, const Run& run);

  // Once. Waits for the result, at most until `deadline`, and throws the Error that ended the operation; at the deadline
  // Error{timeout} that says for whom it waited. `hint`: what to do then.
  void wait(Instant deadline, const std::string& hint = {});

 private:
  struct Outcome;
  Runner* runner_;
  std::uint64_t operation_;
  std::string label_;
  std::shared_ptr<Outcome> outcome_;
};

}  // namespace shoal::collective

// What the probes share: all-reduces of doubles with numbered operations, timed, and a blocking face for both.
// Everything but rehearse() on the transport's loop.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/net/call.h"

namespace shoal::collective {

class Rehearsal {
 public:
  // Uses operation numbers from `operation` on; whatever is under way at `deadline` ends with Error{timeout}.
  Rehearsal(Runner& runner, std::uint64_t operation, Instant deadline, std::string label);

  std::uint32_t rank() const { return runner_.rank(); }
  std::uint32_t size() const { return runner_.size(); }
  net::Rank member(std::uint32_t rank) const { return runner_.members()[rank]; }
  net::Transport& transport() const { return runner_.transport(); }
  std::uint64_t next_operation() { return operation_++; }
  void later(std::function<void()> fn) { transport().post(std::move(fn)); }

  // values = op over the members' values; `then` also gets the seconds that it took here. `values` stays valid until then.
  void all_reduce(const std::string& program, ReduceOp op, std::vector<double>& values,
                  std::function<void(const net::Failure&, double seconds)> then);
  // A timer at the deadline that hands `end` its error; for transport().cancel().
  std::uint64_t expire(std::function<void(const net::Failure&)> end);

 private:
  Runner& runner_;
  std::uint64_t operation_;
  Instant deadline_;
  std::string label_;
  std::vector<double> contribution_;
};

// Begins something on the loop with a runner of all members, `begin(runner, done)`, and waits for it; its own deadline, which is
// `deadline`, ends it before this wait gives up.
template <class Result, class Begin>
Result rehearse(net::Transport& transport, std::vector<net::Rank> members, Instant deadline, Begin begin) {
  struct Outcome {
    net::Failure why;
    Result result;
  };
  const Nanoseconds patience = std::max(deadline - transport.now(), Nanoseconds::zero()) + net::kLoopAnswers;
  auto outcome = net::ask<Outcome>(transport, patience, [&transport, begin, members](const auto& tell) {
    // Of the loop, made and given up there, in an event of its own: `done` comes from inside one of its operations.
    const auto runner = std::make_shared<std::unique_ptr<Runner>>(std::make_unique<Runner>(transport, members));
    begin(**runner, [&transport, runner, tell](const net::Failure& why, const Result& result) {
      transport.post([runner] { runner->reset(); });
      tell({why, result});
    });
  });
  if (!outcome) throw Error(Code::internal, "the network's loop does not answer");
  if (outcome->why) throw Error(*outcome->why);
  return std::move(outcome->result);
}

template <class Result, class Begin>
Result rehearse(net::Transport& transport, Instant deadline, Begin begin) {
  std::vector<net::Rank> everybody(transport.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  return rehearse<Result>(transport, std::move(everybody), deadline, std::move(begin));
}

}  // namespace shoal::collective

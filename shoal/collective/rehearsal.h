// What the probes share: all-reduces of doubles with numbered operations, timed, and a blocking face for both.
// Everything but wait_for() on the transport's loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/run.h"

namespace shoal::collective {

class Rehearsal {
 public:
  // Uses operation numbers from `operation` on; whatever is under way at `deadline` ends with Error{timeout}.
  Rehearsal(Runner& runner, std::uint64_t operation, Instant deadline, std::string label);

  std::uint32_t rank() const { return runner_.rank(); }
  std::uint32_t size() const { return runner_.size(); }
  net::Rank member(std::uint32_t rank) const { return runner_.member(rank); }
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

// Begins something on the loop with a runner of all members, and waits until its own deadline has ended it at the latest.
// `begin(runner, done)`.
template <class Result, class Begin>
Result wait_for(net::Transport& transport, Begin begin) {
  struct Outcome {
    std::atomic<bool> known = false;
    net::Failure why;  // read after `known`, as `result`
    Result result;
    std::unique_ptr<Runner> runner;  // of the loop, made and given up there
  };
  const auto outcome = std::make_shared<Outcome>();
  transport.post([&transport, outcome, begin] {
    std::vector<net::Rank> members(transport.size());
    std::iota(members.begin(), members.end(), 0);
    outcome->runner = std::make_unique<Runner>(transport, std::move(members));
    begin(*outcome->runner, [outcome](const net::Failure& why, const Result& result) {
      outcome->why = why;
      outcome->result = result;
      outcome->known.store(true, std::memory_order_release);
    });
  });
  const auto known = [outcome] { return outcome->known.load(std::memory_order_acquire); };
  while (!transport.drive(known, transport.now() + std::chrono::seconds(1))) {
  }
  transport.post([outcome] { outcome->runner.reset(); });
  if (outcome->why) throw Error(*outcome->why);
  return outcome->result;
}

}  // namespace shoal::collective

// Where the time of a run went, told from its events. Nothing is measured here; every figure is a sum over spans.
//
// Words. A member's *time* runs from its first to its last span of forward, backward, optimizer or waiting. Each moment of
// it belongs to one heading; where spans lie inside each other the one further down this list has it:
//   forward, backward, optimizer, network (the caller waited for bytes), waiting (the caller waited for a member who had
//   not come so far), other (data loading, evaluation, the script itself).
// Network and waiting together are *exposed*. What is *hidden* is the share of the time with a tensor on its way in which
// the caller did not wait.
//
// Other is taken apart where its place says what it was: *loading* is what lies before a forward pass, where a step has ended and
// the next has not begun; a *pause* is such a time that is longer than a step and more than kPause times the usual one (evaluation,
// a checkpoint); *recording* is the recorder's own, *planning* measures links and makes the plan. *Start-up* lies before a member's time: from its first event to its first span.
//
// Members move at the pace of the slowest, so a mean says little of a link. Its *fastest* rate does: of all bytes, by the rate of the
// 100 ms in which they came, nine in ten came slower.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shoal/exchange/plan.h"
#include "shoal/observe/run_events.h"

namespace shoal::observe {

struct TimeSpent {  // seconds
  double forward = 0, backward = 0, optimizer = 0, network = 0, waiting = 0, other = 0;
  double whole() const { return forward + backward + optimizer + network + waiting + other; }
  double exposed() const { return network + waiting; }
};

constexpr double kPause = 10;

struct RankAccount {
  int rank = 0;
  std::string host;
  std::int64_t steps = 0;               // iterations that ran the optimizer or, without one, backward
  TimeSpent spent;
  std::map<int, double> waited_for;     // seconds by rank; sums to spent.waiting
  double unplanned = 0;                 // of spent.network, before the plan was made from what the first steps took
  std::int64_t unplanned_steps = 0;     // of steps
  std::optional<double> hidden;         // nothing where nothing was exchanged

  double start_up = 0;                  // seconds before `spent`
  double loading = 0, pauses = 0, recording = 0, planning = 0;  // of spent.other
  std::int64_t paused = 0;              // how often
  double samples = 0;                   // of a forward pass, mean; 0 where nobody said
  double on_the_way = 0;                // seconds with a tensor on its way
  double received = 0;                  // bytes, in its time
  double fastest_in = 0, fastest_out = 0;  // bytes/s, from and to all others together
};

// One unit of the plan: a tensor, or several packed together. Seconds are means over all its exchanges of all members.
struct TensorAccount {
  std::string name;
  std::string way;                      // empty without a plan; one that is not exact says so: "int8 (lossy)", "ring (local steps)"
  double bytes = 0;                     // of its gradients; 0 without a plan
  double sent = 0;                      // bytes that a member handed to the network for it
  std::int64_t exchanges = 0;           // of all members
  double seconds = 0;                   // from produced to reduced
  std::optional<double> predicted_exposed;
  double exposed = 0;                   // the caller waited for bytes of it
  double waited = 0;                    // the caller waited for a member before it
  double hidden = 1;
};

// Slices of the bulk connection, as the receiver saw them.
struct LinkAccount {
  int from = 0, to = 0;
  double bytes = 0;
  double seconds = 0;                   // the receiver's time
  double fastest = 0;                   // bytes/s in training itself, over 100 ms: what one byte in ten exceeds
  double in_training = 0;               // bytes without those before the first step and those of the probe
  double rate() const { return seconds > 0 ? bytes / seconds : 0; }            // bytes/s
};

struct Account {
  std::vector<RankAccount> ranks;       // by rank
  TimeSpent mean;                       // over ranks
  std::optional<double> hidden;         // over ranks, weighted by time on the way
  std::int64_t steps = 0;               // the most of any rank
  std::vector<TensorAccount> tensors;   // in the plan's order, then as they first appeared
  std::vector<LinkAccount> links;       // by from, to
  std::vector<std::string> remarks;     // of the events: what is missing
  std::vector<std::string> notes;       // what members noted, by time; the same line of several members is one
  std::string clocks;

  double seconds_a_step() const { return steps > 0 ? mean.whole() / static_cast<double>(steps) : 0; }
};

// `plan` may be null. O(events log events).
Account account_of(const RunEvents& run, const exchange::ExchangePlan* plan);

}  // namespace shoal::observe

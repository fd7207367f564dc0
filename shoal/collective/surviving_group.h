// Sums among members of whom some may be lost, one operation each (survivors.h): for programs that have sums to make and losses to outlive. Training,
// where a step with all of its sums is one operation, goes by joint.h.
//
// all_reduce() ends on all survivors with the same bits, the sum over the same contributors, or on all with an error (survivors.h). The result says
// who contributed, with the weights that they gave, so that the caller can make a mean of it. The input is as it was until the sum is certain, also
// where the output is the same memory; after an error, too.
//
// On a known network (Options::link) the first of those that are left makes the programs for what is left of it, trees around the hole, and tells the
// others before the sum that they do together next: milliseconds for eight hosts, a quarter of a second for 32 (docs/failures.md), on the loop; more go by builders.
//
// Threads: on the transport's loop, but for sum(), which is for any other. Lifetime: the transport outlives us.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/collective/survivors.h"

namespace shoal::collective {

struct Addition {
  DType type = DType::f32;
  ReduceOp op = ReduceOp::sum;         // average: divides by the number of contributors
  Buffers buffers;                     // valid until done; input and output may be one memory
  std::uint64_t count = 0;             // elements, equal on all members
  double weight = 1;                   // of this contribution: told to all, not multiplied
  net::Priority priority;
  Nanoseconds patience = std::chrono::seconds(5);
  std::string label;                   // for errors and events
};

class SurvivingGroup {
 public:
  struct Options {
    std::string builder;               // of build.h, or the network's while those that are left can have it; empty: the cheapest by `link`
    LinkModel link{};                  // equal on all members
  };
  using Summed = std::function<void(const net::Failure&, const std::vector<Contributor>&)>;

  // Throws Error{invalid_argument} for a builder that these members cannot have.
  SurvivingGroup(net::Transport& transport, std::vector<net::Rank> members, std::uint16_t channel, Options options);

  // Members call it in the same order with the same type, count and op, one after the other. done runs once, never inside.
  void all_reduce(const Addition& addition, Summed done);
  // The same from any other thread: waits for it. Throws the Error with which it ended on all.
  std::vector<Contributor> sum(const Addition& addition);
  std::vector<net::Rank> members() const { return survivors_.members(); }

 private:
  class Sum;
  struct Programs;
  net::Transport& transport_;
  std::shared_ptr<Programs> programs_;
  Survivors survivors_;
};

}  // namespace shoal::collective

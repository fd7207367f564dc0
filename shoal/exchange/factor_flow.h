// A layer's pairs on their way to all members (factor/factor.h): first how many rows everybody has, then the rows themselves, each kind in
// one all-gather, so that they lie in rank order in one piece. What no pair explains follows by an all-reduce, if anybody has such a rest.
//
// Threads: start() and what follows on the transport's loop. gathered() may be read by whoever saw done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/exchange/arena.h"
#include "shoal/factor/factor.h"

namespace shoal::exchange {

// The programs by which pairs travel, equal on all members.
struct FactorPrograms {
  const collective::Verified* heads = nullptr;  // all-gathers
  const collective::Verified* rows = nullptr;
  const collective::Verified* rest = nullptr;   // an all-reduce
};

class FactorFlow {
 public:
  static constexpr std::uint64_t kOperations = 4;  // the transport's, from Run::operation on

  FactorFlow(collective::Runner& runner, factor::Shape shape, FactorPrograms programs);

  // own: its memory, and this, stay until done has run. weights: of all members by rank, empty if all are equal. run: type, slices, priority,
  // first operation and label; its scaling applies to the rest.
  void start(const factor::Pair& own, std::vector<double> weights, const collective::Run& run, net::Done done);

  const factor::Gathered& gathered() const { return gathered_; }
  const factor::Shape& shape() const { return shape_; }

 private:
  void place();
  void gather(std::uint64_t width, const std::byte* own, std::byte* all, std::uint64_t part);
  void add_rest();
  void arrived(const net::Failure& why);
  net::Failure check() const;

  collective::Runner& runner_;
  const factor::Shape shape_;
  const FactorPrograms programs_;

  factor::Pair own_;
  collective::Run run_;
  net::Done done_;
  std::vector<factor::Head> heads_;  // by rank
  factor::Head own_head_;
  int waiting_ = 0;
  net::Failure failure_;

  Arena x_, g_, rest_, zeros_;
  factor::Gathered gathered_;
};

}  // namespace shoal::exchange

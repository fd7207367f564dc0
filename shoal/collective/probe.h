// Measuring the network between the live members of a job: what selection by size (select.h), plans and `shoal doctor` are
// fed with. All members call the same function at the same place of their program with the same operation numbers.
//
// Threads: the variants with `done` run on the transport's loop, and their runner stays there until `done` has run; the
// blocking ones run on any other thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shoal/collective/link_model.h"
#include "shoal/collective/run.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

// --- the group as a whole: one LinkModel, the same on all members (the slowest's figures)

inline constexpr std::uint64_t kProbeOperations = 256;  // numbers that one probe uses, from `operation` on

using Probed = std::function<void(const net::Failure&, const LinkModel&)>;
void probe(Runner& runner, std::uint64_t operation, Instant deadline, Probed done);
// Throws the Error that ended it; at the deadline Error{timeout}.
LinkModel probe(net::Transport& transport, std::uint64_t operation, Instant deadline);
// The same of some members, transport ranks, by these alone.
LinkModel probe(net::Transport& transport, const std::vector<net::Rank>& members, std::uint64_t operation, Instant deadline);

// --- every pair, for `shoal doctor`

struct PairFigures {            // from one member to another
  double latency = 0;           // seconds one way: half a round trip of 8 bytes
  double rate_alone = 0;        // bytes/s while nobody else sends
  double rate_together = 0;     // bytes/s while every member sends to one and receives from one
};
struct PairMatrix {
  std::uint32_t size = 0;
  std::vector<PairFigures> figures;  // [from * size + to]; zeros on the diagonal
  const PairFigures& at(std::uint32_t from, std::uint32_t to) const { return figures[from * size + to]; }
};
inline constexpr std::uint64_t pair_probe_operations(std::uint32_t size) { return 2 * (std::uint64_t{size} * size + size + 2); }

using PairsProbed = std::function<void(const net::Failure&, const PairMatrix&)>;
void probe_pairs(Runner& runner, std::uint64_t operation, Instant deadline, PairsProbed done);
PairMatrix probe_pairs(net::Transport& transport, std::uint64_t operation, Instant deadline);

}  // namespace shoal::collective

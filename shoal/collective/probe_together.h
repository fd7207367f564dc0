// What flows between live members get at the same time: the rounds from which topo::infer concludes what is shared.
//
// All members call it at the same place with the same flows, figures and operation numbers, and get the same rates. Receivers ask for
// pieces of some milliseconds and keep so many asked for that the path stays full; each counts, by its own clock, what comes between
// the warm-up and the end of the round, and what was asked for is awaited before the next one begins.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shoal/collective/probe.h"
#include "shoal/topo/infer.h"

namespace shoal::collective {

inline constexpr std::uint64_t kTogetherOperations = 3;  // numbers that one round uses, from `operation` on

// alone: what probe_pairs() found, by which pieces and times are chosen. Flows name ranks, each pair at most once. Threads as in probe.h.
using ProbedTogether = std::function<void(const net::Failure&, const std::vector<double>& rates)>;  // bytes/s, by flow
void probe_together(Runner& runner, const std::vector<topo::Flow>& flows, const PairMatrix& alone, std::uint64_t operation,
                    Instant deadline, ProbedTogether done);
// Throws the Error that ended it; at the deadline Error{timeout}.
std::vector<double> probe_together(net::Transport& transport, const std::vector<topo::Flow>& flows, const PairMatrix& alone,
                                   std::uint64_t operation, Instant deadline);

}  // namespace shoal::collective

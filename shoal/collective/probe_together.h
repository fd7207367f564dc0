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
#include "shoal/net/job.h"
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

// The network that explains what pairs get alone and groups of them together. Blocks; every member gets the same value. `hosts`: unequal
// names, by rank. `operation`: the first of kTogetherOperations numbers a round; how many rounds there are infer.h says.
topo::Topology infer_network(net::Transport& transport, const std::vector<std::string>& hosts, const PairMatrix& alone,
                             std::uint64_t operation, Nanoseconds patience_a_round);

// All of it: pairs, then groups, until the network is known that the members of a job are on, host i being rank i. Blocks; all members call
// it at the same place and get the same value. Uses measure_operations(members) numbers from `operation` on; some seconds, more the more
// members there are and the slower their links.
topo::Topology measure_network(net::Job& job, std::uint64_t operation);
constexpr std::uint64_t measure_operations(std::uint32_t size) { return pair_probe_operations(size) + kTogetherOperations * 5 * size; }

}  // namespace shoal::collective

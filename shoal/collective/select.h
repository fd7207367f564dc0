// Which program for which size: closed-form prices from measured figures, written into the plan so that a replay
// chooses the same. Pure functions. All throw Error{invalid_argument} for 0 ranks or a link without speed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shoal/collective/known_network.h"
#include "shoal/collective/link_model.h"
#include "shoal/collective/program.h"
#include "shoal/collective/tuning.h"

namespace shoal::collective {

// What measuring a network (probe.h) would give, if it is as known: for questions that are asked before anything runs. Of `machine` stay
// the cost of a step, to which the longest latency of a way is added, and the rate of additions. At most kMostExactHosts hosts.
LinkModel link_on(std::shared_ptr<const KnownNetwork> network, const LinkModel& machine);

// Seconds for `bytes` by the named program, members otherwise idle (docs/collectives.md has the formulas). `bytes` is the
// whole vector: of all_gather and gather the result, of reduce_scatter, scatter and all_to_all the (root's) input.
double price(Collective collective, const std::string& name, std::uint32_t ranks, double bytes, const LinkModel& link,
             std::uint32_t root = 0);

// Bytes that the member with the most to do sends (or receives, where that is more) for `bytes` as above by the named program.
double busiest_bytes(Collective collective, const std::string& name, std::uint32_t ranks, double bytes);

// The cheapest builder for this size, or what was made for the network where one is known (trees, and what its form has); among equals that which adds
// inside of hosts first, then the first of builder_names(); before them what the tuning asks for, if this group can have it. left_fold_only: only programs
// that add in rank order, whose bits no other choice or packing changes. Throws Error{unsupported} if none has so many ranks.
std::string choose(Collective collective, std::uint32_t ranks, double bytes, const LinkModel& link, bool left_fold_only = false,
                   std::uint32_t root = 0);

// The program of that name, proved: a builder's, or the network's.
Verified program_named(Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root = 0,
                       const KnownNetwork* network = nullptr);

// The runner's slice for the named program on this link: clamp(rate x 1 ms, 16 KiB, 128 KiB), a multiple of 64, and at most
// bytes / ranks where members send parts or pass on what they receive slice by slice.
std::uint32_t slice_bytes(Collective collective, const std::string& name, std::uint32_t ranks, double bytes, const LinkModel& link);

}  // namespace shoal::collective

#include "shoal/collective/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <vector>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"
#include "shoal/collective/build_rings.h"
#include "shoal/collective/build_trees.h"
#include "shoal/collective/certificate.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/topo/routes.h"

namespace shoal::collective {

namespace {

// T = steps * alpha + (vectors * bytes + slices * slice) / rate + added * bytes / add_rate, with the rate and the step of flows
// that meet (fan_in, fan_in_alpha) where all members send to one.
struct Cost {
  double steps = 0;
  double vectors = 0;  // sent or received by the busiest member, in whole vectors
  double slices = 0;   // that the last of a line waits for the first: pipelined programs alone
  double added = 0;    // by the busiest member, in whole vectors
};

struct Priced {
  Collective collective;
  const char* name;
  bool left_fold;           // or nothing is added
  bool meets;               // flows of all others meet at a member
  bool whole;               // a step sends the whole vector, and nothing is gained by passing on its first slice early
  std::uint32_t max_ranks;
  Cost (*cost)(double n);   // n >= 2 ranks
};

constexpr double kSamePrice = 1e-9;     // less apart is rounding: the first of equals is taken
constexpr double kMeetingShare = 0.8;  // of a link that three TCP flows share, against one (docs/collectives.md)

double log2_floor(double n) { return std::floor(std::log2(n)); }
bool has_extra(double n) { return !std::has_single_bit(static_cast<std::uint64_t>(n)); }
double share(double n) { return (n - 1) / n; }  // of a vector: all chunks but the own

// Members without a place (build_tree.cc) cost a step and a vector before and after, and an addition.
Cost doubling(double n) {
  const double rounds = log2_floor(n), extra = has_extra(n) ? 1 : 0;
  return {rounds + 2 * extra, rounds + extra, 0, rounds + extra};
}
Cost halving(double n) {
  const double places = std::exp2(log2_floor(n)), extra = has_extra(n) ? 1 : 0;
  return {2 * log2_floor(n) + 2 * extra, 2 * share(places) + extra, 0, share(places) + extra};
}

Cost nearest_grid(double n) {
  const auto [rows, columns] = nearest_factors(static_cast<std::uint32_t>(n));
  return {2. * (rows - 1 + columns - 1), 2 * share(n), 0, share(n)};
}

// Two trees with half of the data each: counted, as their forms differ a little from number to number.
Cost two_trees(double n) {
  const auto ranks = static_cast<std::uint32_t>(n);
  std::vector<double> sent(ranks), added(ranks);
  double height = 0;
  for (const DataTree& tree : double_binary_trees(ranks)) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      double above = 0;
      for (std::uint32_t at = rank; at != tree.root; at = tree.up[at]) ++above;
      height = std::max(height, above);
      if (rank == tree.root) continue;
      sent[rank] += 0.5;  // up, and what it hears; its parent adds, and tells
      sent[tree.up[rank]] += 0.5;
      added[tree.up[rank]] += 0.5;
    }
  }
  return {2 * height, *std::max_element(sent.begin(), sent.end()), 2 * height - 1, *std::max_element(added.begin(), added.end())};
}

constexpr Priced kPrices[] = {
    {Collective::all_reduce, "direct", true, true, false, kMaxPairRanks, [](double n) { return Cost{2, 2 * share(n), 0, share(n)}; }},
    {Collective::all_reduce, "gather", true, true, true, kMaxPairRanks, [](double n) { return Cost{1, n - 1, 0, n - 1}; }},
    // Inner members of the line send up and down at once; of two members each sends one way.
    {Collective::all_reduce, "chain", true, false, false, kMaxRanks, [](double n) { return Cost{2 * (n - 1), n > 2 ? 2. : 1., 2 * n - 3, 1}; }},
    {Collective::all_reduce, "ring", false, false, false, kMaxRanks, [](double n) { return Cost{2 * (n - 1), 2 * share(n), 0, share(n)}; }},
    {Collective::all_reduce, "recursive_doubling", false, false, true, kMaxRanks, doubling},
    {Collective::all_reduce, "halving_doubling", false, false, false, kMaxRanks, halving},
    {Collective::all_reduce, "swing", false, false, false, kMaxRanks, halving},
    {Collective::all_reduce, "grid", false, false, false, kMaxRanks, nearest_grid},
    {Collective::all_reduce, "double_binary_tree", false, false, false, kMaxRanks, two_trees},
    {Collective::reduce_scatter, "direct", true, true, false, kMaxPairRanks, [](double n) { return Cost{1, share(n), 0, share(n)}; }},
    // Its lanes share a link in turns: at each hand-over the last slice waits for one of every lane.
    {Collective::reduce_scatter, "ring", false, false, false, kMaxPairRanks, [](double n) { return Cost{n - 1, share(n), (n - 1) * (n - 2), share(n)}; }},
    {Collective::all_gather, "direct", true, true, false, kMaxPairRanks, [](double n) { return Cost{1, share(n), 0, 0}; }},
    {Collective::all_gather, "ring", true, false, false, kMaxRanks, [](double n) { return Cost{n - 1, share(n), 0, 0}; }},
    {Collective::broadcast, "flat", true, false, true, kMaxRanks, [](double n) { return Cost{1, n - 1, 0, 0}; }},
    {Collective::broadcast, "binomial", true, false, false, kMaxRanks, [](double n) { return Cost{std::ceil(std::log2(n)), std::ceil(std::log2(n)), 0, 0}; }},
    {Collective::broadcast, "chain", true, false, false, kMaxRanks, [](double n) { return Cost{n - 1, 1, n - 2, 0}; }},
    {Collective::reduce, "flat", true, true, true, kMaxRanks, [](double n) { return Cost{1, n - 1, 0, n - 1}; }},
    {Collective::reduce, "chain", false, false, false, kMaxRanks, [](double n) { return Cost{n - 1, 1, n - 2, 1}; }},
    {Collective::gather, "flat", true, true, false, kMaxRanks, [](double n) { return Cost{1, share(n), 0, 0}; }},
    {Collective::scatter, "flat", true, false, false, kMaxRanks, [](double n) { return Cost{1, share(n), 0, 0}; }},
    {Collective::all_to_all, "direct", true, true, false, kMaxPairRanks, [](double n) { return Cost{1, share(n), 0, 0}; }},
};

void check(std::uint32_t ranks, double bytes, const LinkModel& link) {
  if (ranks < 1 || ranks > kMaxRanks) throw Error(Code::invalid_argument, fmt::format("{} members; 1 to {} are allowed", ranks, kMaxRanks));
  const bool sound = std::isfinite(bytes) && bytes >= 0 && std::isfinite(link.alpha) && link.alpha >= 0 && link.rate > 0 && link.add_rate > 0 &&
                     link.fan_in >= 0 && link.fan_in_alpha >= 0 && link.saves >= 0;
  if (!sound) {
    throw Error(Code::invalid_argument, fmt::format("no price for {} bytes at alpha {} s, {} bytes/s, adding {} bytes/s", bytes, link.alpha,
                                                    link.rate, link.add_rate));
  }
}

std::uint32_t slice_of(const Priced& program, std::uint32_t ranks, double bytes, const LinkModel& link) {
  constexpr double kLeast = 16 << 10, kMost = 128 << 10, kLine = 64;  // the windows of direct among four still fit in L2
  const double slice = std::min(std::clamp(link.rate * 1e-3, kLeast, kMost), program.whole ? bytes : bytes / ranks);
  return static_cast<std::uint32_t>(std::max(std::ceil(slice / kLine), 1.0) * kLine);
}

// Of a group of all its hosts; a group of some only goes by the link's figures.
const KnownNetwork* known(const KnownNetwork* network, std::uint32_t ranks) {
  return network != nullptr && network->ranks() == ranks ? network : nullptr;
}
const Verified* made_for(const KnownNetwork* network, Collective collective, const std::string& name, std::uint32_t ranks,
                         std::uint32_t root) {
  return known(network, ranks) != nullptr ? network->made(collective, name, root) : nullptr;
}

// How slices are cut of what is made for a known network.
constexpr Priced kFormPriced{Collective::all_reduce, "", false, false, false, kMaxRanks, nullptr};
constexpr Priced kTreesPriced{Collective::all_reduce, kTrees, false, false, true, kMaxRanks, nullptr};
const Priced& of_network(const std::string& name) { return name == kTrees ? kTreesPriced : kFormPriced; }

// Seconds that the links of a known network need. Where slices follow each other, the fullest link is full but for the first wave, a slice of every chunk,
// which goes its whole course alone; where several are added together, they do not end together either, which costs as much again. In phases all is course.
double on_links(const KnownNetwork& network, Collective collective, std::uint32_t root, const std::string& name, double bytes,
                double slice) {
  const double steady = network.rate(collective, name, root);
  const Course course = network.course(collective, name, root);
  const double wave = std::min(bytes, slice / course.chunk), waves = course.chunk < 1 && !in_parts(collective) ? 2 : 1;
  return bytes / steady + waves * wave * std::max(0.0, 1 / course.rate - 1 / steady);
}

// What was made for the network.
double made_seconds(Collective collective, std::uint32_t root, const std::string& name, std::uint32_t ranks, double bytes,
                    const LinkModel& link) {
  if (ranks == 1) return 0;
  const Course course = link.network->course(collective, name, root);
  if (name != kTrees)
    return course.steps * link.alpha + bytes / link.network->rate(collective, name) + course.added * bytes / link.add_rate;
  const double moving = on_links(*link.network, collective, root, name, bytes, slice_of(kTreesPriced, ranks, bytes, link));
  return course.steps * link.alpha + moving + (adds(collective) ? bytes / link.add_rate : 0);
}

double seconds(const Priced& program, std::uint32_t root, std::uint32_t ranks, double bytes, const LinkModel& link) {
  if (ranks == 1) return 0;
  const Cost cost = program.cost(ranks);
  const double slice = std::min<double>(slice_of(program, ranks, bytes, link), bytes);
  const KnownNetwork* const network = known(link.network.get(), ranks);
  if (network != nullptr && network->rate(program.collective, program.name, root) > 0) {
    return cost.steps * link.alpha + on_links(*network, program.collective, root, program.name, bytes, slice) +
           cost.added * bytes / link.add_rate;
  }
  const double meeting = link.fan_in > 0 ? link.fan_in : kMeetingShare * link.rate;
  const bool meets = program.meets && ranks > 2;
  const double rate = meets ? meeting : link.rate;
  const double alpha = meets && link.fan_in_alpha > 0 ? link.fan_in_alpha : link.alpha;
  return cost.steps * alpha + (cost.vectors * bytes + cost.slices * slice) / rate + cost.added * bytes / link.add_rate;
}

const Priced& priced(Collective collective, const std::string& name) {
  for (const Priced& program : kPrices) {
    if (program.collective == collective && program.name == name) return program;
  }
  throw Error(Code::invalid_argument, fmt::format("no price for a program \"{}\" of {}", name, collective::name(collective)));
}

[[noreturn]] void refuse_unmade(Collective collective, const std::string& program, std::uint32_t ranks) {
  const auto of = fmt::format("{} of {} members", name(collective), ranks);
  if (program == kTrees) {
    throw Error(Code::invalid_argument, "no trees are known for " + of, program, "say which network this is: SHOAL_TOPOLOGY=FILE, a topology of as many hosts");
  }
  if (program == kHierarchical) {
    throw Error(Code::invalid_argument, "nothing is known of shared hosts for " + of, program,
                fmt::format("it adds inside of each host first: run several members on one of several hosts, {} at most", kMostExactHosts));
  }
  throw Error(Code::invalid_argument, "no network of this form is known for " + of, program,
              fmt::format("say which network this is: SHOAL_TOPOLOGY=FILE, a topology of as many hosts, {} at most", kMostExactHosts));
}

}  // namespace

LinkModel link_on(std::shared_ptr<const KnownNetwork> network, const LinkModel& machine) {
  const topo::Topology& topology = network->topology();
  const std::uint32_t ranks = network->ranks();
  LinkModel link = machine;
  if (ranks > 1) {
    const double moved = 2 * share(ranks);  // of a vector, by each member, by these two programs
    link.saves = 0;  // that was another's
    link.rate = moved * network->rate(Collective::all_reduce, "ring");
    link.fan_in = moved * network->rate(Collective::all_reduce, "direct");
    topo::Routes routes(topology);
    Nanoseconds longest{};
    for (topo::Node from = 0; from < ranks; ++from) {
      for (topo::Node to = 0; to < ranks; ++to) {
        Nanoseconds latency{};
        for (const std::uint32_t index : routes.path(from, to)) latency += topology.links[index].latency;
        longest = std::max(longest, latency);
      }
    }
    link.alpha += Seconds(longest).count();
    if (link.fan_in_alpha > 0) link.fan_in_alpha += Seconds(longest).count();
  }
  link.network = std::move(network);
  return link;
}

double price(Collective collective, const std::string& name, std::uint32_t ranks, double bytes, const LinkModel& link,
             std::uint32_t root) {
  check(ranks, bytes, link);
  if (is_of_network(name)) {
    if (made_for(link.network.get(), collective, name, ranks, root) == nullptr) refuse_unmade(collective, name, ranks);
    return made_seconds(collective, root, name, ranks, bytes, link);
  }
  return seconds(priced(collective, name), root, ranks, bytes, link);
}

double busiest_bytes(Collective collective, const std::string& name, std::uint32_t ranks, double bytes) {
  check(ranks, bytes, {});
  if (is_of_network(name)) return ranks == 1 ? 0 : 2 * bytes;  // who has a parent and a child sends the whole up and down; a ring's member little less
  return ranks == 1 ? 0 : priced(collective, name).cost(ranks).vectors * bytes;
}

std::string choose(Collective collective, std::uint32_t ranks, double bytes, const LinkModel& link, bool left_fold_only,
                   std::uint32_t root) {
  check(ranks, bytes, link);
  std::vector<std::pair<const char*, double>> offers;  // programs that can be had, and their prices
  const auto offer_made = [&](const char* name) {
    if (left_fold_only || ranks == 1 || made_for(link.network.get(), collective, name, ranks, root) == nullptr) return;
    offers.emplace_back(name, made_seconds(collective, root, name, ranks, bytes, link));
  };
  offer_made(kHierarchical);
  for (const Priced& program : kPrices) {
    if (program.collective != collective || ranks > program.max_ranks || (left_fold_only && !program.left_fold)) continue;
    offers.emplace_back(program.name, seconds(program, root, ranks, bytes, link));
  }
  offer_made(kTrees);
  for (const char* const form : kForms) {
    if (form != std::string_view(kHierarchical)) offer_made(form);
  }
  const char* const why = left_fold_only ? " that adds in rank order" : "";
  if (offers.empty()) throw Error(Code::unsupported, fmt::format("no program for {} of {} ranks{}", name(collective), ranks, why));
  for (const auto& [program, score] : link.tuning ? link.tuning->wishes(collective, ranks, bytes) : std::vector<Tuning::Wish>()) {
    const auto is_called = [&, &wanted = program](const auto& offer) { return offer.first == wanted; };
    if (score > 0 && std::ranges::any_of(offers, is_called)) return program;
    if (score == 0) std::erase_if(offers, is_called);
  }
  if (offers.empty()) {
    throw Error(Code::unsupported, fmt::format("its rules leave no program for {} of {} ranks and {:.0f} bytes{}", name(collective), ranks, bytes, why),
                "SHOAL_TUNE", "give one of them a score above 0");
  }
  auto cheapest = offers.front();
  for (const auto& offer : offers) {
    if (offer.second < cheapest.second * (1 - kSamePrice)) cheapest = offer;
  }
  return cheapest.first;
}

Verified program_named(Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root, const KnownNetwork* network) {
  if (!is_of_network(name)) return verify(build(collective, name, ranks, root));
  const Verified* const made = made_for(network, collective, name, ranks, root);
  if (made == nullptr) refuse_unmade(collective, name, ranks);
  return *made;
}

std::uint32_t slice_bytes(Collective collective, const std::string& name, std::uint32_t ranks, double bytes, const LinkModel& link) {
  check(ranks, bytes, link);
  return slice_of(is_of_network(name) ? of_network(name) : priced(collective, name), ranks, bytes, link);
}

}  // namespace shoal::collective

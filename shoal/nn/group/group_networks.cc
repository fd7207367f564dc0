#include "shoal/nn/backend_network.h"

#include <algorithm>
#include <string>

#include "shoal/nn/find_network.h"

namespace shoal::nn {
namespace {

constexpr std::uint16_t kMeasuring = 4;  // a channel beside the group's own (group_loop.cc)
constexpr const char *kSaid = "said of the network", *kWider = "known of the network", *kNetwork = "network";

// What the first of the members knows from a group that all of them are in, on all of them.
struct Wider {
  bool known = false;
  std::shared_ptr<const collective::KnownNetwork> network;
};
Wider of_wider_group(const GroupNetworks::Ranks& ranks, net::Rank rank, StoreRendezvous& rendezvous, Nanoseconds patience) {
  if (rank != 0) {
    const bool known = rendezvous.get(kWider, patience) == "1";
    return {known, known ? collective::KnownNetwork::heard(rendezvous.get_long(kNetwork, patience)) : nullptr};
  }
  const auto wider = GroupNetworks::local().of(ranks);
  rendezvous.put(kWider, wider ? "1" : "0");
  if (!wider) return {};
  std::string words;
  if (wider->network) {
    std::vector<std::uint32_t> places;
    for (const std::uint64_t one : ranks) {
      places.push_back(static_cast<std::uint32_t>(std::ranges::find(wider->ranks, one) - wider->ranks.begin()));
    }
    try {
      words = wider->network->words_around(places);
    } catch (const Error&) {  // the others wait for a word
    }
  }
  rendezvous.put_long(kNetwork, words);
  return {true, collective::KnownNetwork::heard(words)};
}

}  // namespace

GroupNetworks& GroupNetworks::local() {
  static GroupNetworks networks;
  return networks;
}

std::shared_ptr<const void> GroupNetworks::add(Known known) {
  const auto kept = std::make_shared<const Known>(std::move(known));
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& weak) { return weak.expired(); });
  known_.push_back(kept);
  return kept;
}

std::shared_ptr<const GroupNetworks::Known> GroupNetworks::of(const Ranks& ranks) {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : known_) {
    const auto known = weak.lock();
    const auto has = [&](std::uint64_t rank) { return std::ranges::find(known->ranks, rank) != known->ranks.end(); };
    if (known && std::ranges::all_of(ranks, has)) return known;
  }
  return nullptr;
}

collective::LinkModel links_of_group(net::Job& job, const GroupNetworks::Ranks& ranks, StoreRendezvous& rendezvous,
                                     Nanoseconds patience) {
  // Between processes of one machine flows that meet cost nothing, and direct adds each byte in one pass (docs/collectives.md).
  auto link = collective::count(collective::hosts_of(job.members())) == 1 ? collective::LinkModel::one_machine()
                                                                          : collective::LinkModel{};
  const net::Rank rank = job.place().rank;
  const std::string here = rank == 0 ? said_here() : rendezvous.get(kSaid, patience);
  if (rank == 0) rendezvous.put(kSaid, here);  // the others refuse what this member refuses
  const Said said = read_said(here);
  link.tuning = said.tuning;
  if (said.topology == "none" || ranks.size() == 1) return link;
  const Wider wider = of_wider_group(ranks, rank, rendezvous, patience);
  if (wider.known) {
    link.network = wider.network;
    return link;
  }
  const auto tell = [&](const std::string& words) {
    if (rank != 0) return rendezvous.get_long(kNetwork, patience);
    rendezvous.put_long(kNetwork, words);
    return words;
  };
  link.network = find_network(job, said, link, net::operation_in(kMeasuring, 0), patience, tell);
  return link;
}

}  // namespace shoal::nn

#include "shoal/nn/group/group_networks.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "shoal/core/error.h"
#include "shoal/nn/group/find_network.h"

namespace shoal::nn {
namespace {

constexpr std::uint16_t kMeasuring = 4;  // a channel beside the group's own (group_loop.cc)
constexpr std::size_t kPiece = net::Rendezvous::kLongestValue, kMostPieces = 1024;
constexpr const char *kSaid = "said of the network", *kWider = "known of the network", *kNetwork = "network";

// A text of up to kMostPieces pieces, each under a key of its own.
void put_long(net::Rendezvous& board, const std::string& key, const std::string& text) {
  const std::size_t pieces = (text.size() + kPiece - 1) / kPiece;
  for (std::size_t piece = 0; piece < pieces; ++piece)
    board.put(key + "/" + std::to_string(piece), text.substr(piece * kPiece, kPiece));
  board.put(key, std::to_string(pieces));
}

std::string get_long(net::Rendezvous& board, const std::string& key, Nanoseconds patience) {
  const std::string count = board.get(key, patience);
  std::size_t pieces = 0;
  const auto [end, wrong] = std::from_chars(count.data(), count.data() + count.size(), pieces);
  if (wrong != std::errc() || end != count.data() + count.size() || pieces > kMostPieces) {
    throw Error(Code::invalid_argument, "the value of \"" + key + "\" is no number of pieces that a member writes",
                "the members' board");
  }
  std::string text;
  for (std::size_t piece = 0; piece < pieces; ++piece) text += board.get(key + "/" + std::to_string(piece), patience);
  return text;
}

// What the first of the members knows from a group that all of them are in, on all of them.
struct Wider {
  bool known = false;
  std::shared_ptr<const collective::KnownNetwork> network;
};
Wider of_wider_group(GroupNetworks& networks, const GroupNetworks::Ranks& ranks, net::Rank rank, net::Rendezvous& board,
                     Nanoseconds patience) {
  if (rank != 0) {
    const bool known = board.get(kWider, patience) == "1";
    return {known, known ? collective::KnownNetwork::heard(get_long(board, kNetwork, patience)) : nullptr};
  }
  const auto wider = networks.of(ranks);
  board.put(kWider, wider ? "1" : "0");
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
  put_long(board, kNetwork, words);
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

collective::LinkModel links_of_group(net::Job& job, GroupNetworks& networks, const GroupNetworks::Ranks& ranks,
                                     net::Rendezvous& board, Nanoseconds patience) {
  // Between processes of one machine flows that meet cost nothing, and direct adds each byte in one pass (docs/collectives.md).
  auto link = collective::count(collective::hosts_of(job.members())) == 1 ? collective::LinkModel::one_machine()
                                                                          : collective::LinkModel{};
  const net::Rank rank = job.place().rank;
  const std::string here = rank == 0 ? said_here() : board.get(kSaid, patience);
  if (rank == 0) board.put(kSaid, here);  // the others refuse what this member refuses
  const Said said = read_said(here);
  link.tuning = said.tuning;
  if (said.topology == "none" || ranks.size() == 1) return link;
  const Wider wider = of_wider_group(networks, ranks, rank, board, patience);
  if (wider.known) {
    link.network = wider.network;
    return link;
  }
  const auto tell = [&](const std::string& words) {
    if (rank != 0) return get_long(board, kNetwork, patience);
    put_long(board, kNetwork, words);
    return words;
  };
  link.network = find_network(job, said, link, net::operation_in(kMeasuring, 0), patience, tell);
  return link;
}

}  // namespace shoal::nn

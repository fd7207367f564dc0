#include "shoal/table/kept.h"

#include <algorithm>

#include "shoal/core/error.h"
#include "shoal/table/packed.h"

namespace shoal::table {
namespace {

Packed& operator<<(Packed& packed, const Point& point) { return packed << point.met << static_cast<Key>(point.clock); }

Point point_from(Unpacked& packed) {
  const std::uint64_t met = packed.number();
  return {met, static_cast<Clock>(packed.number())};
}

struct Held {
  net::Rank by;
  const Kept* kept;
};
using Shards = std::vector<std::vector<Held>>;  // of a table

// Who would hold a shard first if nobody had been lost is first among those that do.
void order(std::vector<Held>& holders, const std::vector<net::Rank>& first_holders) {
  const auto place = [&](const Held& held) {
    return std::pair(std::ranges::find(first_holders, held.by) - first_holders.begin(), held.by);
  };
  std::ranges::sort(holders, {}, place);
}

// The last point that all holders have reached, if they can go back to it: then each goes on as a holder, and the next loss loses nothing.
// Else the last that some holder of each shard has reached.
Start start_of(const Shards& shards) {
  const auto stands = [](const Held& held) { return held.kept->stands; };
  const Kept *all_reached = nullptr, *some_reached = nullptr;
  Point first;
  for (const auto& holders : shards) {
    const auto [least, furthest] = std::ranges::minmax_element(holders, {}, stands);
    if (!all_reached || least->kept->stands < all_reached->stands) all_reached = least->kept;
    if (!some_reached || furthest->kept->stands < some_reached->stands) some_reached = furthest->kept;
    for (const Held& held : holders) first = std::max(first, held.kept->first);
  }
  const Kept& at = first <= all_reached->stands ? *all_reached : *some_reached;
  return {at.stands, at.consistency, {}};
}

}  // namespace

Message message_of(const std::vector<Kept>& kept, const Placement& placement) {
  Packed packed;
  packed << placement.shards();
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) packed << placement.buckets_of(shard);
  packed << kept.size();
  for (const Kept& one : kept) packed << one.table << one.shard << one.stands << one.first << name(one.consistency);
  return packed.message(Kind::kept, 0);
}

std::vector<Kept> kept_from(const Message& message, const Placement& placement, net::Rank from) {
  const auto refuse = [&](const char* what) {
    return Error(Code::mismatch, "rank " + std::to_string(from) + what, "tables", "run the same program with the same settings on all members");
  };
  if (message.header.length != message.keys().size_bytes()) throw refuse(" tells of what it has kept in a message that is none");
  Unpacked packed(message.keys());
  bool same = packed.number() == placement.shards();
  for (std::size_t shard = 0; same && shard < placement.shards(); ++shard) same = packed.number() == placement.buckets_of(shard);
  if (!same) throw refuse(" deals out rows otherwise than this member");
  std::vector<Kept> kept;
  for (std::uint64_t left = packed.number(); left > 0; --left) {
    Kept& one = kept.emplace_back();
    one.table = packed.number();
    one.shard = packed.number();
    one.stands = point_from(packed);
    one.first = point_from(packed);
    one.consistency = consistency_from(packed.text());
    if (one.shard >= placement.shards()) throw refuse(" tells of a shard that there is not");
  }
  return kept;
}

std::map<std::uint64_t, Start> conclude(const std::vector<std::vector<Kept>>& by_rank, const Placement& placement) {
  std::map<std::uint64_t, Shards> tables;
  for (net::Rank rank = 0; rank < by_rank.size(); ++rank) {
    for (const Kept& kept : by_rank[rank]) {
      Shards& shards = tables.try_emplace(kept.table, placement.shards()).first->second;
      shards[kept.shard].push_back({rank, &kept});
    }
  }
  const Error lost(Code::io, "all members that held some rows were lost before others had them: rows of all tables are lost", "tables",
                   "begin again from a snapshot");
  std::map<std::uint64_t, Start> starts;
  for (auto& [table, shards] : tables) {
    const bool begun = std::ranges::any_of(shards, [](const auto& holders) {
      return std::ranges::any_of(holders, [](const Held& held) { return held.kept->stands > Point{}; });
    });
    if (std::ranges::any_of(shards, &std::vector<Held>::empty)) {
      if (begun) throw lost;
      continue;
    }
    Start start = start_of(shards);
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      order(shards[shard], placement.first_holders(shard));
      auto& holders = start.holders.emplace_back();
      for (const Held& held : shards[shard]) {
        if (held.kept->stands >= start.at && held.kept->first <= start.at) holders.push_back(held.by);
      }
      if (holders.empty()) throw lost;
    }
    starts.emplace(table, std::move(start));
  }
  return starts;
}

}  // namespace shoal::table

#include "shoal/table/kept.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/packed.h"

namespace shoal::table {
namespace {

constexpr const char* kSameProgram = "run the same program with the same settings on all members";

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

// A shard that was about to move has one holder more than it needs: who holds most of all drops it.
void drop_spare(std::vector<std::vector<net::Rank>>& holders, std::size_t replicas) {
  std::map<net::Rank, std::size_t> load;
  for (const auto& of_shard : holders) {
    for (const net::Rank rank : of_shard) ++load[rank];
  }
  for (auto& of_shard : holders) {
    while (of_shard.size() > replicas) {
      const auto most = std::ranges::max_element(of_shard, {}, [&load](net::Rank rank) { return load[rank]; });
      --load[*most];
      of_shard.erase(most);
    }
  }
}

}  // namespace

Message message_of(const Told& told) {
  const Placement& placement = told.placement;
  Packed packed;
  packed << std::uint64_t{told.was_there} << placement.replicas() << placement.parts() << placement.dealt().size();
  for (const net::Rank rank : placement.dealt()) packed << rank;
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) packed << placement.buckets_of(shard);
  packed << told.kept.size();
  for (const Kept& one : told.kept) packed << one.table << one.shard << one.stands << one.first << name(one.consistency);
  return packed.message(Kind::kept, 0);
}

Told told_from(const Message& message, net::Rank from, net::Rank members) {
  const auto require = [&](bool holds, const char* what) {
    if (!holds) throw Error(Code::mismatch, "rank " + std::to_string(from) + what, "tables", kSameProgram);
  };
  require(message.header.length == message.keys().size_bytes(), " tells of what it has kept in a message that is none");
  Unpacked packed(message.keys());
  const bool was_there = packed.number() != 0;
  const std::uint64_t replicas = packed.number(), parts = packed.number(), servers = packed.number();
  require(servers >= 1 && servers <= std::min<std::size_t>(members, kBuckets) && parts >= 1 && parts <= kBuckets / servers && replicas >= 1, " deals out rows as nobody can");
  std::vector<net::Rank> ranks;
  for (std::uint64_t server = 0; server < servers; ++server) {
    const std::uint64_t rank = packed.number();
    require(rank < members && std::ranges::count(ranks, rank) == 0, " deals out rows to nobody");
    ranks.push_back(static_cast<net::Rank>(rank));
  }
  std::vector<std::size_t> buckets;
  std::uint64_t left = kBuckets;
  for (std::uint64_t shard = 0; shard < servers * parts; ++shard) {
    const std::uint64_t count = packed.number();
    require(count >= 1 && count <= left, " deals out rows as nobody can");
    buckets.push_back(count);
    left -= count;
  }
  require(left == 0, " deals out rows as nobody can");
  Told told{was_there, Placement(std::move(ranks), replicas, parts, buckets), {}};
  for (std::uint64_t more = packed.number(); more > 0; --more) {
    Kept& one = told.kept.emplace_back();
    one.table = packed.number();
    one.shard = packed.number();
    one.stands = point_from(packed);
    one.first = point_from(packed);
    one.consistency = consistency_from(packed.text());
    require(one.shard < told.placement.shards(), " tells of a shard that there is not");
  }
  return told;
}

const Placement& agree(const std::vector<Told>& by_rank) {
  const auto decides = std::ranges::find_if(by_rank, &Told::was_there);
  const Told& first = decides == by_rank.end() ? by_rank.front() : *decides;
  for (net::Rank rank = 0; rank < by_rank.size(); ++rank) {
    const Told& other = by_rank[rank];
    if (other.was_there != first.was_there || other.placement.deals_as(first.placement)) continue;
    throw Error(Code::mismatch, "rank " + std::to_string(rank) + " deals out rows otherwise than rank " + std::to_string(&first - by_rank.data()), "tables", kSameProgram);
  }
  return first.placement;
}

std::map<std::uint64_t, Start> conclude(const std::vector<Told>& by_rank, const Placement& placement) {
  std::map<std::uint64_t, Shards> tables;
  for (net::Rank rank = 0; rank < by_rank.size(); ++rank) {
    for (const Kept& kept : by_rank[rank].kept) {
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
    drop_spare(start.holders, placement.replicas());
    starts.emplace(table, std::move(start));
  }
  return starts;
}

std::vector<Moving> spread_over_joined(std::uint64_t table, std::vector<std::vector<net::Rank>> holders, const Placement& placement) {
  std::vector<Moving> moves;
  if (placement.joined().empty()) return moves;
  std::vector<std::size_t> load(std::size_t{*std::ranges::max_element(placement.servers())} + 1);
  const auto by_load = [&load](net::Rank rank) { return load[rank]; };
  for (const auto& of_shard : holders) {
    for (const net::Rank rank : of_shard) ++load[rank];
  }
  std::vector<std::vector<std::size_t>> answered_by(load.size());  // shards, by who answers for them
  for (std::size_t shard = 0; shard < holders.size(); ++shard) {
    std::vector<net::Rank>& of_shard = holders[shard];
    while (of_shard.size() < placement.replicas()) {   // it will have as many, the next from who holds least
      std::vector<net::Rank> others;
      std::ranges::copy_if(placement.servers(), std::back_inserter(others), [&](net::Rank rank) { return std::ranges::count(of_shard, rank) == 0; });
      if (others.empty()) break;
      ++load[of_shard.emplace_back(*std::ranges::min_element(others, {}, by_load))];
    }
    answered_by[of_shard.front()].push_back(shard);
  }
  for (;;) {
    const net::Rank to = *std::ranges::min_element(placement.joined(), {}, by_load);
    std::optional<net::Rank> from;
    for (net::Rank rank = 0; rank < load.size(); ++rank) {
      const auto can_go = [&](std::size_t shard) { return std::ranges::count(holders[shard], to) == 0; };
      if (load[rank] >= load[to] + 2 && (!from || load[rank] > load[*from]) && std::ranges::any_of(answered_by[rank], can_go)) from = rank;
    }
    if (!from) return moves;
    std::vector<std::size_t>& shards = answered_by[*from];
    const auto moved = std::ranges::find_if(shards, [&](std::size_t shard) { return std::ranges::count(holders[shard], to) == 0; });
    moves.push_back({table, *moved, to});
    shards.erase(moved);
    --load[*from];
    ++load[to];
  }
}

}  // namespace shoal::table

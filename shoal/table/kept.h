// What tables go on with when their members meet anew, others in the places of lost ones, or more than before (net::OnPeerLost::rejoin).
//
// Whoever hears of a loss stops: its shards stay as they are at that moment, whatever is still under way. When all members have met in the next group
// each tells what it has kept: of each shard where it stands, and the first point to which it can go back. From that all conclude the same, and nobody
// is asked twice:
//
//   1. A table goes on at the last point that all holders have reached, so that they are holders still and another loss loses nothing. Where somebody
//      cannot go back so far, at the last point that of each shard some holder has reached.
//   2. Holders that stand further go back to it (Shard::go_back). Those that have not reached it, or cannot go back, hold the shard no more; who is
//      to hold it besides those that are left gets it by handover.h, while all go on.
//   3. All workers begin again there. What anybody added with a timestamp below the point's clock counts once, whoever is lost; nothing else counts.
//      Rows that somebody assigned stay as they are: an assignment that was under way may be at one holder and not at the other, so assign between
//      barriers, or again.
//   4. A shard that nobody has any more ends the run; but where no clock of its table and no barrier was complete at anybody, the table is opened anew.
//   5. Rows stay in the shards in which they are: who was there says how they are dealt out, and who comes takes it from them. Members beyond those to
//      whom they were dealt are given shards by the others (spread_over_joined), while all go on.
//
// If another member is lost before all have begun, the next group concludes anew: who has begun stands at the point concluded first, and the others
// stand where they stood, so that no worker's whole clocks are lost between the two.
//
//   kept   to all members: Told as numbers (packed.h)
//
// Values; threads: any.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shoal/table/message.h"
#include "shoal/table/placement.h"

namespace shoal::table {

// A place in a table's history, the same for all its shards: barriers that are over, and clocks that all workers have completed.
struct Point {
  std::uint64_t met = 0;
  Clock clock = 0;
  auto operator<=>(const Point&) const = default;
};

// What one member has kept of one shard.
struct Kept {
  std::uint64_t table;
  std::size_t shard;
  Point stands, first;       // first: the earliest point to which it can go back
  Consistency consistency;   // where it stands
};

// What one member tells.
struct Told {
  bool was_there = false;    // where all had met, in some group before this one: so it knows how rows were dealt out
  Placement placement;
  std::vector<Kept> kept;
};
Message message_of(const Told& told);
// members: of the group. Throws Error{mismatch} where this is no such message.
Told told_from(const Message& message, net::Rank from, net::Rank members);
// How rows are dealt out. Throws Error{mismatch} naming the first member with another placement among those that decide.
const Placement& agree(const std::vector<Told>& by_rank);

// How a table goes on.
struct Start {
  Point at;
  Consistency consistency;
  std::vector<std::vector<net::Rank>> holders;  // by shard
};
// By table. by_rank: what each member has told. Throws Error{io} if rows are lost with the memory of members.
std::map<std::uint64_t, Start> conclude(const std::vector<Told>& by_rank, const Placement& placement);

// What is to move so that who has joined holds as many shards of a table as others, when each has as many holders as it is to have: a shard goes from who
// answers for it.
struct Moving {
  std::uint64_t table;
  std::size_t shard;
  net::Rank to;
};
std::vector<Moving> spread_over_joined(std::uint64_t table, std::vector<std::vector<net::Rank>> holders, const Placement& placement);  // holders: by shard

}  // namespace shoal::table

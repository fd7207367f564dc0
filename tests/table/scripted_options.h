// What workers on the scripted network are to be like (scripted_workers.h).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"
#include "tests/table/spread_increments.h"

namespace shoal::table {

struct ScriptedOptions {
  net::Rank members = 3;
  std::uint32_t workers_a_member = 1;
  Consistency consistency = Ssp{2};
  Clock clocks = 12;
  Key keys = 20;
  std::uint64_t seed = 1;           // of the network and of who moves
  std::vector<net::Rank> servers, workers;  // none: all members
  std::uint32_t parts = 1;          // of each server's rows
  std::vector<Clock> clocks_of{};   // by worker, instead of `clocks`
  bool uneven = false;              // later workers have fewer clocks; who is done waits at the barrier
  std::size_t width = 0;            // of a row, at least
  Spread spread = Spread::own;      // of an increment
  net::ScriptedNetwork network{};
  bool pauses = true;               // some workers are slow for a while
  Encoding encoding = Encoding::none;
  Rule rule{};
  std::optional<bool> ones{};       // what is added, or else fractions; none: of integers ones
  bool remainder = false;           // who is done adds something more, of no whole clock, before it waits at the barrier
  std::vector<std::pair<net::Rank, Nanoseconds>> kills;  // members that die, and when; the others go on
  struct Move { Nanoseconds when; std::size_t shard; net::Rank to; };
  std::vector<Move> moves;
  std::vector<std::pair<net::Rank, Nanoseconds>> departures;  // members that go in good order
  std::size_t most_under_way = std::size_t{256} << 20;
  std::size_t most_copies = std::size_t{4} << 30;
  bool intends = false;             // workers say of some rows for how many clocks they will read them
  bool spares_last_holders = false;  // who dies does not before somebody is known to have all that it holds, nor the last worker at all
};

}  // namespace shoal::table

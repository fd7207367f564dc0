// How much of all rows each member serves: in proportion to the memory that it has for them, so that tables larger than one member's memory fit.
//
// The memory of a machine, or of a container with its limit, is divided by the members that run in it. SHOAL_TABLE_MEMORY=16GB on a member says
// what it gives instead; the same on all members spreads rows evenly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"
#include "shoal/table/tables.h"

namespace shoal::table {

struct Memory {                      // of a member
  std::uint64_t megabytes = 0;
  std::uint64_t machine = 0;         // equal where it is shared with others; 0: it is this member's alone
};
std::vector<std::uint64_t> shares_of(std::span<const Memory> members);

// What tables of a whole program are to be like: rows by memory, in as many parts (TablesOptions::parts) as SHOAL_TABLE_PARTS=4 says on that member on which it
// says most, copies as SHOAL_TABLE_COPIES=1GB says (TablesOptions::most_copies), cold rows in the folder that SHOAL_COLD_ROWS names, their order as the environment
// says (order.h), the rest as by default. By all members, before they have tables; `channel` is the tables' own, `meeting` serves before they are there, and nothing else uses it. is_first: nobody has dealt rows
// out before (kept.h); else what these variables say of that counts no more. Throws Error{invalid_argument} for what they say.
TablesOptions options_here(net::Transport& transport, Nanoseconds patience, std::uint16_t channel, std::uint16_t meeting, bool is_first = true);

// The first members have workers, the last ones only serve, and have so much more of the rows that all links are equally busy where every worker reads and
// changes all of them, as with gradients (exchange/servers_way.cc).
void serve_beside(TablesOptions& options, net::Rank workers, net::Rank servers);

}  // namespace shoal::table

// What a server has shown to some readers and not yet to all (Wei et al., "Consistency models for parameter servers", 2013: half-synchronised).
//
// Updates are numbered in the order in which they become part of the rows. After a round of pushed rows a reader is sent a *stamp*, the number
// of the last update in it, and sends it back when it has the round; so the least stamp that came back tells what all have. Rows that are
// fetched later have everything. Threads: the transport's loop.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/magnitudes.h"

namespace shoal::table {

class Released {
 public:
  explicit Released(net::Rank members) : readers_(members) {}

  // By which handover this server came to the rows; 0: it had them. Stamps of another one, of the same server before, are none.
  void begins(std::uint64_t handover) { handover_ = handover; }
  std::uint64_t handover() const { return handover_; }
  void joins(net::Rank reader);   // it has no rows yet
  void leaves(net::Rank reader);  // it needs none any more, and joins no more

  // Whether each of these rows' sums of what only some have stays within `bound`, or there is nothing of it: the gate of strong VAP.
  bool fits(std::span<const Amount> amounts, double bound) const;
  // A member's update is in the rows. `amounts`: what of it counts in fits().
  void release(net::Rank origin, std::uint64_t sequence, std::vector<Amount> amounts);

  // The number for a round that leaves now; 0: the reader was told already.
  std::uint64_t stamp(net::Rank reader);
  // False if it was sent no such stamp.
  bool came_back(net::Rank reader, std::uint64_t stamp);
  // Whose updates all have now that not all had at the last call: the member, and the sequence of its last such.
  std::vector<std::pair<net::Rank, std::uint64_t>> take_seen();

 private:
  struct Reader {
    bool joined = false, left = false;
    std::uint64_t sent = 0, back = 0;  // stamps
  };
  struct Update {
    std::uint64_t number;
    net::Rank origin;
    std::uint64_t sequence;
    std::vector<Amount> amounts;
  };
  std::vector<Reader> readers_;        // by rank
  std::uint64_t handover_ = 0;
  std::uint64_t last_ = 0;             // number of an update
  std::deque<Update> half_;            // that some have, in order
  Sums sums_;                          // of half_
};

}  // namespace shoal::table

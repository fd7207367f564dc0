// The servers that hold one shard, and what they have told a member. What is written goes to all of them; it is confirmed when all that count have
// confirmed it, and the first of these answers who reads.
//
// A holder may come while the shard is used (handover.h): from `joins` on it is told what is written, from `holds` on it has what was written
// before, too, and it counts as soon as it has confirmed what the others had: so what was told once is never taken back. Where nobody counts, a
// member waits: for the word of one that joins, which always comes unless that is lost, too.
//
// Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/message.h"

namespace shoal::table {

class Holders {
 public:
  // Those that hold it from the beginning, the first that is to answer first.
  // announced, flushes: what all of them have told already.
  explicit Holders(const std::vector<net::Rank>& ranks, Clock announced = 0, std::uint64_t flushes = 0);

  // --- who they are
  // It is told everything from here on. handover: its number. leads: it is to answer, once it counts. written: the part of this member's that was
  // written last, which it will have.
  void joins(net::Rank rank, std::uint64_t handover, bool leads, std::uint64_t written = 0);
  void holds(net::Rank rank, std::uint64_t handover);    // and stays
  void lacks(net::Rank rank, std::uint64_t handover);
  void goes(net::Rank rank, std::uint64_t handover);     // it answers only where nobody else can
  void parts(net::Rank rank, std::uint64_t handover);    // it is told nothing more
  void leaves(net::Rank rank);                           // it says nothing more
  void loses(net::Rank rank);

  std::optional<net::Rank> first() const;                // of those that count
  net::Rank last_first() const { return last_first_; }   // or who was that last
  bool has(net::Rank rank) const { return find(rank) != nullptr; }
  std::vector<net::Rank> all() const;                    // that live, also those that join
  std::vector<net::Rank> whole() const;                  // of these, who have everything
  std::vector<net::Rank> staying() const;                // and do not go
  bool joining() const;                                  // one of them has not
  bool lost() const { return hosts_.empty(); }           // nobody has it

  // --- what they have told
  void hear(net::Rank rank, const Header& header);       // what tells a clock
  void hear_each(net::Rank rank, std::span<const Key> clocks);
  bool gone() const;                                     // the first has left
  bool gone_before(std::uint64_t flushes) const;         // one has left without having told of so many barriers
  Clock announced() const { return told_.announced; }    // by all
  std::uint64_t counted() const { return told_.counted; }  // parts up to this are in the rows of all
  std::uint64_t flushes() const { return told_.flushes; }  // barriers that all have told of
  std::uint64_t most_flushes() const;                    // that one of them has told of
  std::uint64_t first_flushes() const;
  const std::vector<Clock>& each() const { return each_; }  // worker's clock, as the first told; none: it has not
  std::uint64_t dropped() const { return dropped_; }
  // Where values are bounded: whoever reads from that holder, now or later, has this member's parts up to that one; and whoever reads, from whichever.
  void sees(net::Rank rank, std::uint64_t sequence);
  std::uint64_t seen() const;
  void all_know() { lost_seen_.reset(); }                // that those are lost that are

  // Keys that are written out of time, until all have confirmed them.
  void assigns(std::vector<Key> keys) { assigning_.push_back(std::move(keys)); }
  std::size_t assigning() const { return assigning_.size(); }
  std::optional<std::vector<Key>> take_assigned();       // the next that are confirmed

 private:
  struct Told {
    Clock announced = 0;
    std::uint64_t counted = 0, flushes = 0, assigned = 0;
    bool reaches(const Told& other) const;
  };
  struct Host {
    net::Rank rank;
    std::uint64_t handover = 0;                          // by which it joined; 0: it was there
    bool whole = true, counts = true, goes = false, gone = false;
    Told told{};
    std::uint64_t seen = 0;
  };
  const Host* find(net::Rank rank) const;
  Host* find(net::Rank rank) { return const_cast<Host*>(std::as_const(*this).find(rank)); }
  const Host* first_host() const;
  void conclude();                                       // who counts, and what all of these have told

  std::vector<Host> hosts_;                              // that live
  net::Rank last_first_;
  Told told_;
  std::vector<Clock> each_;
  std::uint64_t dropped_ = 0;
  std::optional<std::uint64_t> lost_seen_;               // of lost holders, from which some may still read, the least
  std::set<std::uint64_t> lacked_;                       // handovers whose end was told before their beginning, by another member
  std::deque<std::vector<Key>> assigning_;
  std::uint64_t assigned_ = 0;                           // taken
};

}  // namespace shoal::table

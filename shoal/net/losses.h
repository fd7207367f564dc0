// Which members a job goes on without, where it survives the loss of some (goes_on()).
//
// A connection that its other end has closed is the end of that member: who finds it needs nobody's agreement. Silence is not: a link may be
// cut while both of its ends live, and each takes the other for dead. So a silent link is told to everybody, and once all had time to tell
// theirs, everyone draws the same conclusion from the same links: the member with the most silent links goes, of several the one of the
// highest rank, until no silent link is left. Of two parts that do not hear each other the smaller goes, of equal ones that of the highest rank.
//
// A member that is out never comes back under its rank, so what members conclude in different order only adds up. Pure logic; one thread; time
// is handed in.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

class Losses {
 public:
  // patience: in which everybody has told its silent links, from the first on.
  Losses(Rank size, Nanoseconds patience) : lost_(size), patience_(patience) {}

  void silent(Rank a, Rank b, Instant now);  // a link, as one of its ends says
  bool lose(Rank rank);                      // false: it was lost before
  bool lost(Rank rank) const { return lost_[rank]; }
  std::optional<Instant> due() const { return due_; }  // when conclude() is to be called
  // Who goes by the links that are silent; it may be this member itself. Before due(): nobody.
  std::vector<Rank> conclude(Instant now);

 private:
  std::vector<bool> lost_;
  const Nanoseconds patience_;
  std::set<std::pair<Rank, Rank>> links_;    // silent, the lower rank first, between members that are not lost
  std::optional<Instant> due_;
};

}  // namespace shoal::net

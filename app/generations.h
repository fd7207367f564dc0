// The generations of a run: with each, others come in place of members that were lost, or beside those that there are. What the launcher tells the members
// and hears from them (net/again.h), and how often it may.
#pragma once

#include <cstddef>
#include <vector>

#include "app/member.h"
#include "shoal/core/time.h"
#include "shoal/net/coordinator.h"

namespace shoal::app {

class Generations {
 public:
  // The coordinator outlives it. most: members that are replaced, all in all.
  Generations(net::Coordinator& coordinator, unsigned most);

  unsigned latest() const { return generation_; }
  unsigned replaced() const { return replaced_; }
  bool may(std::size_t more) const { return !stopped_ && replaced_ + more <= most_; }
  void look();                                               // at what members have said by now: some times a second
  bool given_up(unsigned rank, const Member& member) const;  // the others go on without it, though its process may live
  enum class Next { wait, replace, end };
  Next next(const std::vector<Member>& members, const std::vector<unsigned>& failures);  // about those that ended with a status, by rank
  void begin() { ++generation_; }                            // in which the next ones are started
  void begun(std::size_t replaced, unsigned members);        // they are: all may join, so many
  bool takes_more() const;                                   // members beside those that there are (net/again.h)
  bool waits(unsigned attempt, unsigned rank) const;
  void require_alike(unsigned attempt, unsigned rank) const;
  bool begin_with_more(unsigned attempt, unsigned members);  // the next generation; false: it cannot begin, for the others are at something that ends first
  void over();                                         // whoever still waits to join waits in vain
  void stop() { stopped_ = true; }                     // nobody else is replaced: the others go on as they are

 private:
  net::Coordinator& coordinator_;
  const unsigned most_;
  unsigned generation_ = 0, replaced_ = 0;
  bool over_ = false, stopped_ = false;
  Instant next_look_{};
  std::vector<std::vector<net::Rank>> lost_;  // by generation, as its members said last
  Instant unexplained_{};  // since when one has ended because it lost others, who have not said that they lost it
};

}  // namespace shoal::app

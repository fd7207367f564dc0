// How long the increments of lost workers count, agreed by all members that live.
//
// A worker that dies may have completed a clock at one server and not at another. Where readers see whole clocks of it, or clocks that will be
// whole, it must have been the same one everywhere: each server tells which clock every lost worker has completed there, and the least counts. When
// another member is lost meanwhile, all tell anew; what one of them has cut by then is what it tells, so that it is never more. And each tells
// which clock all workers had reached there, or had as it was told by a server that may be lost: the greatest is where the next barrier leads at
// least, for some may have met there with who is lost; and how many barriers are over there: what was added before one that is over everywhere
// counts, whole clock or not. Who serves nothing has no clocks to tell that are less than others'. When all have told, all know of the losses: nobody reads any
// more what a lost server had sent.
//
//   last_clocks   to all members: clocks, of the workers of lost members in their order, the one reached, and barriers; `sequence`: of which members
//
// Threads: the transport's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "shoal/table/message.h"
#include "shoal/table/workers.h"

namespace shoal::table {

struct Last {
  std::map<std::uint32_t, Clock> clocks;         // by worker
  Clock reached = 0;
  std::uint64_t met = 0;                         // barriers
};

class LastClocks {
 public:
  struct Here {                                  // what this member serves, and reads
    // 0 where the table is to be served and is not known, kLastClock (of met: no bound) where it is not.
    std::function<Clock(std::uint64_t table, std::uint32_t worker)> completed;
    std::function<Clock(std::uint64_t table)> reached;
    std::function<std::uint64_t(std::uint64_t table)> met;
    std::function<void(std::uint64_t table, const Last& last)> cut;
    std::function<void(net::Rank to, Message message)> send;
  };
  LastClocks(const Workers& workers, net::Rank members, Here here);

  // tables: that are known here.
  void lose(net::Rank member, const std::vector<std::uint64_t>& tables);
  bool lost(net::Rank member) const { return lost_.contains(member); }
  void falls_silent(net::Rank member);           // what it has not told it will not
  const std::set<net::Rank>& lost() const { return lost_; }
  // A table that is known here from now on.
  void open(std::uint64_t table);
  void take(net::Rank from, const Message& message);  // throws Error{mismatch}
  // Whether all losses so far are agreed on, and what of them counts is cut.
  bool agreed(std::uint64_t table) const {
    const auto round = rounds_.find(table);
    return lost_.empty() || (round != rounds_.end() && round->second.agreed == losses_);
  }

 private:
  struct Round {
    std::uint64_t told = 0, agreed = 0;          // of which losses
    std::map<std::uint64_t, std::map<net::Rank, std::vector<Clock>>> said;  // by losses and server
  };
  void tell(std::uint64_t table);
  void conclude(std::uint64_t table);

  const Workers workers_;
  const net::Rank members_;
  const Here here_;
  std::set<net::Rank> lost_, silent_;
  std::vector<std::uint32_t> lost_workers_;      // in their order
  std::uint64_t losses_ = 0;                     // which members are lost, as one number
  std::map<std::uint64_t, Round> rounds_;        // by table
};

}  // namespace shoal::table

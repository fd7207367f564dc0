// How long the increments of lost workers count, agreed by all servers that live.
//
// A worker that dies may have completed a clock at one server and not at another. Where readers see whole clocks of it, or clocks that will be
// whole, it must have been the same one everywhere: each server tells which clock every lost worker has completed there, and the least counts. When
// another member is lost meanwhile, all tell anew; what one of them has cut by then is what it tells, so that it is never more. And each tells
// which clock all workers had reached there: the greatest is where the next barrier leads at least, for some may have met there with who is lost;
// and how many barriers are over there: what was added before one that is over everywhere counts, whole clock or not.
//
//   last_clocks   to all servers: clocks, of the workers of lost members in their order, the one reached, and barriers; `sequence`: of which members
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
  struct Here {                                  // what this member serves
    // 0 where the table is not known.
    std::function<Clock(std::uint64_t table, std::uint32_t worker)> completed;
    std::function<Clock(std::uint64_t table)> reached;
    std::function<std::uint64_t(std::uint64_t table)> met;
    std::function<void(std::uint64_t table, const Last& last)> cut;
    std::function<void(net::Rank to, Message message)> send;
  };
  LastClocks(const Workers& workers, std::vector<net::Rank> servers, Here here);

  // tables: that are known here.
  void lose(net::Rank member, const std::vector<std::uint64_t>& tables);
  bool lost(net::Rank member) const { return lost_.contains(member); }
  const std::set<net::Rank>& lost() const { return lost_; }
  // A table that is known here from now on.
  void open(std::uint64_t table);
  void take(net::Rank from, const Message& message);  // throws Error{mismatch}

 private:
  struct Round {
    std::uint64_t told = 0, agreed = 0;          // of which losses
    std::map<std::uint64_t, std::map<net::Rank, std::vector<Clock>>> said;  // by losses and server
  };
  void tell(std::uint64_t table);
  void conclude(std::uint64_t table);

  const Workers workers_;
  const std::vector<net::Rank> servers_;
  const Here here_;
  std::set<net::Rank> lost_;
  std::vector<std::uint32_t> lost_workers_;      // in their order
  std::uint64_t losses_ = 0;                     // which members are lost, as one number
  std::map<std::uint64_t, Round> rounds_;        // by table
};

}  // namespace shoal::table

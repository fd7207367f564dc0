// What a process group of the c10d backend goes by when it chooses programs: the links between its members, as they are said, measured or known from
// a group that these are members of.
//
// The first group that is made of members measures (find_network.h), in the order of seconds on networks whose hosts are unequal; groups made of some of
// its members, or left of it when others were lost, go by what it found: what the first of them knows, told to the others over the board where they
// meet. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/net/job.h"

namespace shoal::nn {

// Networks that groups of this process go by, for as long as somebody holds what add() gave.
class GroupNetworks {
 public:
  using Ranks = std::vector<std::uint64_t>;  // in the whole job, by rank in the group
  struct Known {
    Ranks ranks;
    std::shared_ptr<const collective::KnownNetwork> network;  // nullptr: it was looked for, and nothing is unequal
  };
  static GroupNetworks& local();  // of this process
  std::shared_ptr<const void> add(Known known);
  // Of a group in which all of `ranks` are; nullptr if there is none.
  std::shared_ptr<const Known> of(const Ranks& ranks);

 private:
  std::mutex mutex_;  // guards known_
  std::vector<std::weak_ptr<const Known>> known_;
};

// By all members of the new group together, before anything else goes over its job. `ranks`: theirs in the whole job. Throws what find_network()
// throws.
collective::LinkModel links_of_group(net::Job& job, GroupNetworks& networks, const GroupNetworks::Ranks& ranks,
                                     net::Rendezvous& board, Nanoseconds patience);

}  // namespace shoal::nn

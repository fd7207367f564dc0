// Who adds to a table: each of some members has workers, which tick by themselves; they are numbered member by member. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::table {

class Workers {
 public:
  Workers(std::vector<net::Rank> ranks, std::uint32_t a_member)
      : Workers(ranks, std::vector<std::uint32_t>(ranks.size(), a_member)) {}
  // counts: of each of them, one or more.
  Workers(std::vector<net::Rank> ranks, const std::vector<std::uint32_t>& counts) : ranks_(std::move(ranks)), begins_{0} {
    for (std::size_t member = 0; member < ranks_.size(); ++member) {
      begins_.push_back(begins_.back() + counts[member]);
      rank_of_.insert(rank_of_.end(), counts[member], ranks_[member]);
    }
  }
  std::uint32_t size() const { return begins_.back(); }
  net::Rank rank_of(std::uint32_t worker) const { return rank_of_[worker]; }
  // The number of a member's first worker, and how many it has; size() and 0 if none.
  std::uint32_t first_of(net::Rank rank) const { return begins_[place_of(rank)]; }
  std::uint32_t count_of(net::Rank rank) const {
    const std::size_t place = place_of(rank);
    return place == ranks_.size() ? 0 : begins_[place + 1] - begins_[place];
  }
  const std::vector<net::Rank>& ranks() const { return ranks_; }

 private:
  std::size_t place_of(net::Rank rank) const { return static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin()); }

  std::vector<net::Rank> ranks_;       // members that have some
  std::vector<std::uint32_t> begins_;  // the first worker of each, and their number
  std::vector<net::Rank> rank_of_;     // of each worker
};

}  // namespace shoal::table

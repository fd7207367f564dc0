// Who adds to a table: each of some members has the same number of workers, which tick by themselves. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::table {

class Workers {
 public:
  Workers(std::vector<net::Rank> ranks, std::uint32_t a_member) : ranks_(std::move(ranks)), a_member_(a_member) {}
  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()) * a_member_; }
  std::uint32_t a_member() const { return a_member_; }
  net::Rank rank_of(std::uint32_t worker) const { return ranks_[worker / a_member_]; }
  // The number of a member's first worker; size() if it has none.
  std::uint32_t first_of(net::Rank rank) const {
    return static_cast<std::uint32_t>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin()) * a_member_;
  }
  const std::vector<net::Rank>& ranks() const { return ranks_; }

 private:
  std::vector<net::Rank> ranks_;
  std::uint32_t a_member_;
};

}  // namespace shoal::table

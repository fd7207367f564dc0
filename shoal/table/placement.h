// Which shard a key belongs to, and who holds shards first. Keys fall into 4,096 buckets, and buckets onto shards, of each server as many (parts), in
// the proportion of the servers' shares: shard s begins with bucket ceil(4096 (w_0 + ... + w_(s-1)) / (w_0 + ... + w_(n-1))), or one more than
// where the one before begins, so that none is empty; w is the share of its server. A shard is held by one server, or by several that follow each other; which
// these are may change later (holders.h), and the more parts there are, the less moves at a time. Members that join later (kept.h) may hold shards like
// any server, but which shards there are was settled before them: a key's rows stay in the shard that they are in. Values; threads: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

inline constexpr std::uint32_t kBuckets = 4096;
inline std::uint32_t bucket_of(Key key) { return static_cast<std::uint32_t>(spread(key) >> 52); }
// In how many parts the rows of each of so many servers may lie: none without a bucket.
inline std::size_t most_parts(std::size_t servers) { return std::max<std::size_t>(1, kBuckets / servers); }

class Placement {
 public:
  // `servers`: ranks, at least one, each once; with `parts` at most kBuckets shards. replicas: of each shard, if there are as many servers. shares: by
  // rank, above zero, their sum times parts below 2^52; none: equal ones.
  Placement(std::vector<net::Rank> servers, std::size_t replicas, const std::vector<std::uint64_t>& shares = {}, std::size_t parts = 1)
      : Placement(std::move(servers), replicas, parts) {
    const auto share_of = [&](std::size_t shard) { return shares.empty() ? 1 : shares[server_of(shard)]; };
    std::uint64_t all = 0, before = 0, begin = 0;
    for (std::size_t shard = 0; shard < shards(); ++shard) all += share_of(shard);
    for (std::size_t shard = 0; shard < shards(); ++shard) {
      const std::uint64_t proportional = (kBuckets * before + all - 1) / all, last = kBuckets - (shards() - shard);
      begin = shard == 0 ? 0 : std::min(std::max(proportional, begin + 1), last);
      begin_shard(shard, begin);
      before += share_of(shard);
    }
  }
  // As somebody else has dealt them out: buckets of each shard, at least one, kBuckets in all.
  Placement(std::vector<net::Rank> servers, std::size_t replicas, std::size_t parts, const std::vector<std::size_t>& buckets)
      : Placement(std::move(servers), replicas, parts) {
    for (std::size_t shard = 0, begin = 0; shard < shards(); begin += buckets[shard++]) begin_shard(shard, begin);
  }
  // The same rows in the same shards, which these may hold, too.
  Placement joined_by(const std::vector<net::Rank>& ranks) const {
    Placement more = *this;
    for (const net::Rank rank : ranks) {
      if (std::ranges::count(more.servers_, rank) == 0) more.servers_.push_back(rank);
    }
    return more;
  }
  bool deals_as(const Placement& other) const {
    return parts_ == other.parts_ && std::ranges::equal(dealt(), other.dealt()) && std::ranges::equal(shard_, other.shard_);
  }
  std::size_t shards() const { return dealt_ * parts_; }
  std::size_t parts() const { return parts_; }
  std::size_t shard_of(Key key) const { return shards() == 1 ? 0 : shard_[bucket_of(key)]; }
  std::size_t buckets_of(std::size_t shard) const { return static_cast<std::size_t>(std::ranges::count(shard_, shard)); }
  std::size_t replicas() const { return replicas_; }
  const std::vector<net::Rank>& servers() const { return servers_; }                       // that may hold shards
  std::span<const net::Rank> dealt() const { return std::span(servers_).first(dealt_); }    // to whom the rows were dealt
  std::span<const net::Rank> joined() const { return std::span(servers_).subspan(dealt_); }  // and who has come since
  // Who holds that shard at first; who is to answer first is first.
  std::vector<net::Rank> first_holders(std::size_t shard) const {
    std::vector<net::Rank> ranks;
    for (std::size_t replica = 0; replica < replicas_; ++replica) ranks.push_back(servers_[(shard / parts_ + replica) % dealt_]);
    return ranks;
  }

 private:
  Placement(std::vector<net::Rank> servers, std::size_t replicas, std::size_t parts)
      : servers_(std::move(servers)), dealt_(servers_.size()), replicas_(std::min(replicas, dealt_)), parts_(parts) {}
  net::Rank server_of(std::size_t shard) const { return servers_[shard / parts_]; }
  void begin_shard(std::size_t shard, std::size_t bucket) { std::fill(shard_ + bucket, shard_ + kBuckets, static_cast<std::uint16_t>(shard)); }

  std::vector<net::Rank> servers_;
  std::size_t dealt_;                    // to the first of them
  std::size_t replicas_, parts_;
  std::uint16_t shard_[kBuckets] = {};   // by bucket
};

}  // namespace shoal::table

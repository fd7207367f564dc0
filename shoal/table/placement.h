// Which shard a key belongs to, and who holds shards at first. Keys fall into 4,096 buckets, and buckets onto shards in equal parts, as many as there
// are servers. A shard is held by one server, or by several that follow each other; which these are may change later (holders.h). Values;
// threads: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

inline constexpr std::uint32_t kBuckets = 4096;
inline std::uint32_t bucket_of(Key key) { return static_cast<std::uint32_t>(spread(key) >> 52); }

class Placement {
 public:
  // `servers`: ranks, at least one, each once. replicas: of each shard, if there are as many servers.
  Placement(std::vector<net::Rank> servers, std::size_t replicas) : servers_(std::move(servers)), replicas_(std::min(replicas, servers_.size())) {
    for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      shard_[bucket] = static_cast<std::uint16_t>(std::uint64_t{bucket} * servers_.size() / kBuckets);
    }
  }
  std::size_t shards() const { return servers_.size(); }
  std::size_t shard_of(Key key) const { return servers_.size() == 1 ? 0 : shard_[bucket_of(key)]; }
  std::size_t replicas() const { return replicas_; }
  const std::vector<net::Rank>& servers() const { return servers_; }
  // Who holds that shard at first; who is to answer first is first.
  std::vector<net::Rank> first_holders(std::size_t shard) const {
    std::vector<net::Rank> ranks;
    for (std::size_t replica = 0; replica < replicas_; ++replica) ranks.push_back(servers_[(shard + replica) % servers_.size()]);
    return ranks;
  }

 private:
  std::vector<net::Rank> servers_;       // the first of each shard
  std::size_t replicas_;
  std::uint16_t shard_[kBuckets] = {};   // by bucket
};

}  // namespace shoal::table

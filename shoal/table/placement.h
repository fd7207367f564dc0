// Which server owns a key. Keys fall into 4,096 buckets, and buckets onto servers in equal shares, so that a bucket can move without its
// keys being looked at. Values; threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

inline constexpr std::uint32_t kBuckets = 4096;
inline std::uint32_t bucket_of(Key key) { return static_cast<std::uint32_t>(spread(key) >> 52); }

class Placement {
 public:
  // `servers`: ranks, at least one, each once.
  explicit Placement(std::vector<net::Rank> servers) : servers_(std::move(servers)) {
    for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      shard_[bucket] = static_cast<std::uint16_t>(std::uint64_t{bucket} * servers_.size() / kBuckets);
    }
  }
  std::size_t shards() const { return servers_.size(); }
  std::size_t shard_of(Key key) const { return servers_.size() == 1 ? 0 : shard_[bucket_of(key)]; }
  net::Rank server(std::size_t shard) const { return servers_[shard]; }

 private:
  std::vector<net::Rank> servers_;       // by shard
  std::uint16_t shard_[kBuckets] = {};   // by bucket
};

}  // namespace shoal::table

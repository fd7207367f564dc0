// How many messages of rows of each shard its server had sent when a worker read what it computes with: so that servers know which rows it saw (shown.h).
// A part of what it adds is taken for computed with what it had read when it began the part. Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::table {

class Heard {
 public:
  Heard(std::size_t shards, std::size_t workers) : came_(shards), read_(workers, came_), begun_(workers, came_) {}

  void takes(std::size_t shard) { ++came_[shard]; }
  void reads(std::uint32_t worker) { read_[worker] = came_; }
  void begins_part(std::uint32_t worker, std::size_t shard) { begun_[worker][shard] = read_[worker][shard]; }
  std::uint64_t of_part(std::uint32_t worker, std::size_t shard) const { return begun_[worker][shard]; }

 private:
  using Counts = std::vector<std::uint64_t>;       // by shard
  Counts came_;
  std::vector<Counts> read_, begun_;               // by worker
};

}  // namespace shoal::table

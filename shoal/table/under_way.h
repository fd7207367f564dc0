// Bytes of updates that one member has said to servers and these have not counted in: the bound that keeps what a member remembers of its parts, and
// what waits at a server that is slow or runs a function, from growing without end (invariant I9). A worker waits for room at a tick, so that
// each may exceed the bound by what it added in one clock. Room comes of servers alone, never of other workers: so nobody waits in a circle.
// Values; threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace shoal::table {

class UnderWay {
 public:
  // most: bytes to one shard.
  UnderWay(std::size_t shards, std::size_t most) : most_(most), ways_(shards) {}

  void leaves(std::size_t shard, std::uint64_t sequence, std::size_t bytes) {
    ways_[shard].parts.push_back({sequence, bytes});
    ways_[shard].bytes += bytes;
  }
  void counted(std::size_t shard, std::uint64_t sequence) {  // parts up to this
    Way& way = ways_[shard];
    for (; !way.parts.empty() && way.parts.front().sequence <= sequence; way.parts.pop_front())
      way.bytes -= way.parts.front().bytes;
  }
  std::size_t bytes(std::size_t shard) const { return ways_[shard].bytes; }
  bool has_room() const {
    return std::ranges::all_of(ways_, [this](const Way& way) { return way.bytes <= most_; });
  }

 private:
  struct Part {
    std::uint64_t sequence;
    std::size_t bytes;
  };
  struct Way {
    std::deque<Part> parts;  // in the order of sequence
    std::size_t bytes = 0;
  };
  std::size_t most_;
  std::vector<Way> ways_;  // by shard
};

}  // namespace shoal::table

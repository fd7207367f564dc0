// What one worker has added that not all readers have yet, in magnitudes: the write gate of value-bounded policies (Wei et al.,
// "Consistency models for parameter servers", 2013, weak VAP). Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "shoal/table/magnitudes.h"

namespace shoal::table {

class Unseen {
 public:
  static constexpr std::size_t kMostParts = 64;  // before the worker waits at a tick: what is kept of them has a bound

  explicit Unseen(std::size_t shards) : open_(shards), parts_(shards) {}
  // Whether these increments, of one call, keep each of their rows within `bound` or find it with nothing unseen.
  bool fits(std::span<const Amount> amounts, double bound) const;
  void add(std::size_t shard, const Amount& amount);
  void leaves(std::size_t shard, std::uint64_t sequence);  // what was added since the last call, as the part of that number
  void seen(std::size_t shard, std::uint64_t sequence);    // parts up to this, by all
  bool crowded() const;                                    // kMostParts are unseen

 private:
  struct Part {
    std::uint64_t sequence;
    std::vector<Amount> amounts;
  };
  Sums sums_;
  std::vector<std::vector<Amount>> open_;        // by shard
  std::vector<std::deque<Part>> parts_;          // by shard, in the order of sequence
};

}  // namespace shoal::table

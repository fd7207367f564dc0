// Whether a member's workers may add where values are bounded: a worker waits while what it has added to a row, and not all readers have, would
// sum to more than the bound (unseen.h; Wei et al., "Consistency models for parameter servers", 2013). Values; threads: one at a time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shoal/table/placement.h"
#include "shoal/table/rule.h"
#include "shoal/table/unseen.h"

namespace shoal::table {

template <class T>
class WriteGate {
 public:
  WriteGate(const Rule& rule, const Placement& placement, std::size_t workers)
      : placement_(placement), rule_(rule), unseen_(workers, Unseen(placement.shards())) {}

  void rule(const Rule& rule) { rule_ = rule; }  // as this member told it last
  const Rule& rule() const { return rule_; }
  // bound: on values, now; nullopt: none.
  bool may_add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values, std::optional<double> bound) const {
    return !bound || unseen_[worker].fits(amounts(keys, values), *bound);
  }
  void adds(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values, std::optional<double> bound) {
    if (!bound) return;
    for (const Amount& amount : amounts(keys, values)) unseen_[worker].add(placement_.shard_of(amount.key), amount);
  }
  void leaves(std::uint32_t worker, std::size_t shard, std::uint64_t sequence) { unseen_[worker].leaves(shard, sequence); }
  void seen(std::size_t shard, std::uint64_t sequence) {
    for (Unseen& unseen : unseen_) unseen.seen(shard, sequence);
  }
  bool crowded(std::uint32_t worker) const { return unseen_[worker].crowded(); }

 private:
  std::vector<Amount> amounts(std::span<const Key> keys, std::span<const T> values) const {
    std::vector<Amount> amounts;
    append_amounts(rule_, keys, values, amounts);
    return amounts;
  }

  const Placement& placement_;
  Rule rule_;
  std::vector<Unseen> unseen_;                   // by worker
};

}  // namespace shoal::table

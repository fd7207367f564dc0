// What this member's workers have added that is not in the servers' rows yet: open, until it leaves, and then on its way.
//
// A part is what leaves to one shard together: what one worker added in one clock, or where that may leave early, what it added since the
// part before. Its rows are the bodies of its messages; they are kept until the server says that it has counted the part in.
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/table/message.h"
#include "shoal/table/placement.h"
#include "shoal/table/rounding.h"

namespace shoal::table {

template <class T>
struct Part {
  std::uint32_t worker;
  Clock clock;
  std::uint64_t sequence;
  RowMap<T> rows;
  // Whether rows have it that have all of the clocks below, and the parts up to that number.
  bool is_within(Clock below, std::uint64_t last) const { return clock < below || sequence <= last; }
};

// `worker` counts this member's own, from 0.
template <class T>
class Added {
 public:
  using Rows = RowMap<T>;

  // bodies: memory for rows, which becomes that of messages, unless these are encoded.
  Added(std::size_t width, Encoding encoding, const Placement& placement, std::uint32_t workers,
        std::shared_ptr<const BytesPool> bodies = BytesPool::of_process());

  void add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values);
  // The same for a worker of whom nothing is open, in one walk through memory with looking whether the values are finite. False: they are not, and nothing was added.
  bool add_if_finite(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values);
  bool any_is_open(std::uint32_t worker) const {
    return std::ranges::any_of(open_[worker], [](const Open& open) { return open.rows.size() > 0; });
  }
  bool is_open(std::uint32_t worker, std::size_t shard) const { return open_[worker][shard].rows.size() > 0; }
  // Whether what left for that server has not all been counted in.
  bool is_under_way(std::size_t shard) const { return ways_[shard].counted < ways_[shard].last; }
  void begin_anew(std::uint32_t worker) { left_out_[worker].clear(); }  // rows are others now
  std::uint64_t sequence() const { return sequence_; }  // of the last part

  // What is open, as the next part, even one without rows, rounded as rows are on their way: a part is what the server gets. `keep`: onto() and
  // count_in() will need it.
  std::vector<Message> leave(std::uint32_t worker, std::size_t shard, Clock clock, bool keep);
  // But what stays(key, sum, since) names: that is open again afterwards. since: the clock at whose end it first stayed.
  template <class Stays>
  std::vector<Message> leave(std::uint32_t worker, std::size_t shard, Clock clock, bool keep, const Stays& stays);
  // The server has in its rows the parts up to `sequence`, and those with timestamps below `clock`. fold(part) for each that was kept, in
  // the order in which the server added them; then they are forgotten.
  template <class Fold>
  void count_in(std::size_t shard, Clock clock, std::uint64_t sequence, const Fold& fold);
  // The parts that it has so and that are kept, in the same order; until the next call of anything else.
  std::vector<const Part<T>*> counted(std::size_t shard, Clock clock, std::uint64_t sequence) const;

  // Onto row(i), the row of keys[i]: what that worker has added, in order, but for what of the kept parts lacks(key, part) says is there already.
  template <class Row, class Lacks>
  void onto(std::uint32_t worker, std::span<const Key> keys, const Row& row, Lacks lacks) const;

 private:
  struct Open {
    Rows rows;
    std::unordered_map<Key, Clock> since;        // of those that stayed
  };
  Open opened(std::size_t usual = 0) const { return {Rows(width_, bodies_, usual), {}}; }
  struct Way {                                   // to a shard
    std::deque<Part<T>> kept;                    // in the order of sequence
    std::uint64_t last = 0, counted = 0;         // the last part that left; parts up to this are in its rows
  };
  template <class Row, class Lacks>
  void onto(std::size_t shard, const Rows& rows, std::span<const Key> keys, const Row& row, const Lacks& lacks) const;

  const std::size_t width_;
  const Placement& placement_;
  const std::shared_ptr<const BytesPool> bodies_;
  std::vector<std::vector<Open>> open_;          // by worker and shard
  std::vector<Way> ways_;                        // by shard
  std::vector<LeftOut<T>> left_out_;             // by worker
  std::uint64_t sequence_ = 0;
};

template <class T>
template <class Stays>
std::vector<Message> Added<T>::leave(std::uint32_t worker, std::size_t shard, Clock clock, bool keep, const Stays& stays) {
  Open& open = open_[worker][shard];
  Open leaving = opened(), staying = opened();
  for (typename Rows::Number number = 0; number < open.rows.size(); ++number) {
    const Key key = open.rows.key(number);
    const auto known = open.since.find(key);
    const Clock since = known == open.since.end() ? clock : known->second;
    const bool later = stays(key, std::span<const T>(open.rows.row(number)), since);
    (later ? staying : leaving).rows.add(key, Rows::kNone, open.rows.row(number));
    if (later) staying.since[key] = since;
  }
  open = std::move(leaving);
  std::vector<Message> messages = leave(worker, shard, clock, keep);
  open = std::move(staying);
  return messages;
}

template <class T>
template <class Fold>
void Added<T>::count_in(std::size_t shard, Clock clock, std::uint64_t sequence, const Fold& fold) {
  for (const Part<T>* const part : counted(shard, clock, sequence)) fold(*part);
  Way& way = ways_[shard];
  std::erase_if(way.kept, [&](const Part<T>& part) { return part.is_within(clock, sequence); });
  way.counted = std::max(way.counted, sequence);
}

template <class T>
template <class Row, class Lacks>
void Added<T>::onto(std::uint32_t worker, std::span<const Key> keys, const Row& row, Lacks lacks) const {
  for (std::size_t shard = 0; shard < ways_.size(); ++shard) {
    for (const Part<T>& part : ways_[shard].kept) {
      if (part.worker == worker) onto(shard, part.rows, keys, row, [&](Key key) { return lacks(key, part); });
    }
    onto(shard, open_[worker][shard].rows, keys, row, [](Key) { return true; });
  }
}

template <class T>
template <class Row, class Lacks>
void Added<T>::onto(std::size_t shard, const Rows& rows, std::span<const Key> keys, const Row& row, const Lacks& lacks) const {
  if (rows.size() == 0) return;
  typename Rows::Number number = Rows::kNone;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (placement_.shard_of(keys[i]) != shard) continue;
    const auto next = rows.find(keys[i], number + 1);
    if (next == Rows::kNone) continue;
    number = next;
    if (lacks(keys[i])) table::add<T>(row(i), rows.row(number));
  }
}

extern template class Added<float>;
extern template class Added<double>;
extern template class Added<std::int32_t>;
extern template class Added<std::int64_t>;

}  // namespace shoal::table

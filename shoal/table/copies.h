// Copies of servers' rows: their values, how old they are, and which of this member's own parts are in them.
//
// A copy is *pushed* if its server sends it again when it changes: it has the age that the server announced last. Another has the age with
// which it came, and none any more once all workers have met at a barrier. Threads: one at a time.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/table/added.h"
#include "shoal/table/message.h"
#include "shoal/table/placement.h"

namespace shoal::table {

template <class T>
class Copies {
 public:
  using Number = typename RowMap<T>::Number;
  static constexpr Number kNone = RowMap<T>::kNone;

  Copies(std::size_t width, const Placement& placement, std::size_t workers)
      : placement_(placement), rows_(width), told_(placement.shards()), asked_(workers) {}

  Number find(Key key, Number near) const { return rows_.find(key, near); }
  std::span<const T> row(Number number) const { return rows_.row(number); }
  Clock age(Number number) const;
  Instant told(Number number) const;            // when its server said last that it has this age, for all that is known here
  // Whether a row of that age may be read here, or is on its way: unasked, or asked for by this worker, or by one whose request does not
  // wait for the next tick of this one, which is at `clock`.
  bool is_usable(Number number, Clock age) const;
  bool is_coming(Number number, Clock age, Clock clock) const;
  // Those that are neither: this worker's request is to be sent.
  std::vector<Key> ask(std::uint32_t worker, std::span<const Key> keys, Clock age, Clock clock);
  bool has(Number number, const Part<T>& part) const;

  // What a server says: rows, the age of those that it pushes, that a barrier is over.
  void take(std::size_t shard, const Message& rows, bool pushed, Instant now);
  void announce(std::size_t shard, Clock age, Instant told);  // told: when it said so last
  void met(std::size_t shard, std::uint64_t meetings) { told_[shard].meetings = meetings; }
  Clock slowest() const;                        // the least age that a server announced last, and the greatest
  Clock newest() const;

  void fold(const Part<T>& part);               // into those that lack it
  void forget(std::span<const Key> keys);       // they will be asked for again
  void not_pushed_any_more();
  void orphan(std::size_t shard);               // who sent them is lost: they will be asked for again; who was about to read them still can

 private:
  static constexpr Clock kNothing = std::numeric_limits<Clock>::max();
  struct State {                                // of a copy
    Clock age = kNever;
    std::uint64_t included = 0;                 // own parts up to this are in it
    std::uint64_t meetings = 0;                 // of its server, when it came
    Instant came{};
    bool present = false, pushed = false, orphan = false;
  };
  struct Told {                                 // by a server
    Clock age = 0;
    std::uint64_t meetings = 0;
    Instant at{};                               // when the age was told last
  };
  Number place(Key key, Number near);

  const Placement& placement_;
  RowMap<T> rows_;
  std::vector<State> states_;                   // by number
  std::vector<Told> told_;                      // by shard
  std::vector<std::vector<Clock>> asked_;       // by worker and number: the age of its request that is not answered, or kNothing
};

extern template class Copies<float>;
extern template class Copies<double>;
extern template class Copies<std::int32_t>;
extern template class Copies<std::int64_t>;

}  // namespace shoal::table

// Copies of servers' rows: their values, how old they are, and which of this member's own parts are in them.
//
// A copy is *pushed* if its server sends it again when it changes: it has the age that the server announced last. Another has the age with
// which it came, and none any more once all workers have met at a barrier.
//
// Which copies are kept. Those that workers ask for, until
//   - the clocks are over for which somebody said that they would be read (intend());
//   - they have come kVain times since they were read last, that many clocks ago or more (looked at each time as many more have come): pushing them has
//     cost more bytes than asking again would;
//   - they are not pushed, and too old for all workers of this member, which have not read them in their last clock either, for those will most
//     likely be asked for anew: looked for whenever there are twice as many as after the last time;
//   - all together take more than `most` bytes: then those that were read longest ago go, until half of it is left.
// Never those that a worker has read in the clock in which it is, or has asked for without an answer.
// Their room is used again once there is as much of it as of what is kept.
//
// Changes. A copy that is pushed lacks nothing of the server's row as that was when it was last sent but parts of this member's own. So of what others
// change since, the columns are enough (changes.h), once own parts that the server has by then are added to the others. What is not here as the server
// sent it last (it is not kept or was forgotten, its server was lost) takes no changes: it is asked for, and comes whole. Whoever sends changes pushes the row,
// also where this member, not yet at the end of a barrier, took it for one that is not.
//
// Unsubscriptions. Who drops a copy that is pushed has the server told, by a message with the next number of that shard; from then on it takes this row
// only from messages that know of that number (Header::heard), for what was under way is followed by promises that leave the row out. Requests tell the
// number, too, so that whoever answers knows of it, also another holder who was told of none. What comes though it is not kept is unsubscribed.
//
// Views. A row that a view may show is not written: another takes its place (RowMap::replace). What is left behind takes the place of a later one
// when that view and all older ones have ended, or its room is used again as that of dropped rows.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/table/added.h"
#include "shoal/table/changes.h"
#include "shoal/table/message.h"
#include "shoal/table/placement.h"
#include "shoal/table/view.h"

namespace shoal::table {

template <class T>
class Copies {
 public:
  using Number = typename RowMap<T>::Number;
  static constexpr Number kNone = RowMap<T>::kNone;

  static constexpr std::uint32_t kVain = 8;
  static constexpr std::size_t kFew = 1024;     // that are worth no look

  // most: bytes of rows, and what is known of each.
  Copies(std::size_t width, const Placement& placement, std::size_t workers, std::size_t most)
      : placement_(placement), columns_(width), most_(most / (sizeof(Key) + width * sizeof(T) + sizeof(State))), rows_(width),
        look_at_(std::min(kFew, most_)), told_(placement.shards()), asked_(workers) {}

  Number find(Key key, Number near) const {
    const Number number = rows_.find(key, near);
    return number != kNone && states_[number].kept ? number : kNone;
  }
  std::span<const T> row(Number number) const { return rows_.row(number); }
  Clock age(Number number) const;
  Instant told(Number number) const;            // when its server said last that it has this age, for all that is known here
  // Whether a row of that age may be read here, or is on its way: unasked, or asked for by this worker, or by one whose request does not
  // wait for the next tick of this one, which is at `clock`.
  bool is_usable(Number number, Clock age) const;
  bool is_coming(Number number, Clock age, Clock clock) const;
  void use(Number number, Clock clock);         // a worker at `clock` is about to read it
  // A view of no rows, for so many of a worker at `clock`: numbers of rows may be others afterwards. show(): this row, too.
  View<T> view(std::size_t rows, Clock clock);
  void show(View<T>& view, Number number, Clock age);
  // Those that are neither: this worker's request is to be sent.
  std::vector<Key> ask(std::uint32_t worker, std::span<const Key> keys, Clock age, Clock clock);
  bool has(Number number, const Part<T>& part) const;

  // What a server says: rows, the age of those that it pushes, that a barrier is over. own: parts that the server has by then, in the order in which
  // it added them.
  void take(std::size_t shard, const Message& rows, bool pushed, Instant now);
  void change(std::size_t shard, const Message& changes, std::span<const Part<T>* const> own, Instant now);
  void announce(std::size_t shard, Clock age, Instant told);  // told: when it said so last
  void met(std::size_t shard, std::uint64_t meetings) { told_[shard].meetings = meetings; }
  Clock slowest() const;                        // the least age that a server announced last, and the greatest
  Clock newest() const;

  // Until a worker has completed the clock `last` they will be read, and not after it. They are to be asked for.
  void intend(std::span<const Key> keys, Clock last);
  // Copies that need not be kept go, and those are returned that servers push and are to push no more. now: the clock that all workers of this member
  // have reached; age: the least that one of them needs.
  std::vector<Key> drop(Clock now, Clock age);
  std::vector<Key> drop_due(Clock now);          // the same without a look at all copies, which may take long
  std::uint64_t unsubscribed(std::size_t shard) const { return told_[shard].unsubscribed; }  // the number of the last message
  std::uint64_t unsubscribes(std::size_t shard) { return ++told_[shard].unsubscribed; }      // of the next
  const Columns& columns() const { return columns_; }
  std::size_t size() const { return kept_; }

  void fold(const Part<T>& part);               // into those that lack it
  void forget(std::span<const Key> keys);       // they will be asked for again
  void not_pushed_any_more();
  void orphan(std::size_t shard);               // who sent them is lost: they will be asked for again; who was about to read them still can
  std::uint64_t orphanings() const { return orphanings_; }

 private:
  static constexpr Clock kNothing = std::numeric_limits<Clock>::max();
  struct State {                                // of a copy
    Clock age = kNever;
    std::uint64_t included = 0;                 // own parts up to this are in it
    std::uint64_t meetings = 0;                 // of its server, when it came
    Instant came{};
    std::uint64_t since = 0;                    // its server's number when it was asked for: what knows of no such number is not taken
    Clock last = kNever;                        // of a worker, in which it was read or asked for
    Clock until = kNever;                       // in which it is intended to be read
    std::uint64_t shown = 0;                    // the last view that shows it
    std::uint16_t vain = 0;                     // how often it has come since it was read, modulo 2^16
    bool present = false, pushed = false, orphan = false;
    bool kept = false, ends = false;            // ends: it is in ending_
  };
  struct Told {                                 // by a server
    Clock age = 0;
    std::uint64_t meetings = 0;
    Instant at{};                               // when the age was told last
    std::uint64_t unsubscribed = 0;
  };
  static bool is_as_sent(const State& state) { return state.present && !state.orphan; }
  Number place(Key key, Number near);
  Number taken(std::size_t shard, Key key, Number near, std::uint64_t heard, bool pushed);
  void came(std::size_t shard, Number number, const Header& header, bool pushed, Instant now);
  void append_state();
  bool is_asked(Number number) const;
  void drop(Number number, Clock now, std::vector<Key>& pushed);
  void drop_ended(Clock now, std::vector<Key>& pushed);
  void drop_vain(Clock now, std::vector<Key>& pushed);
  void drop_old(Clock now, Clock age, std::vector<Key>& pushed);
  void drop_surplus(Clock now, std::vector<Key>& pushed);
  void close_up();                              // dropped ones leave their room
  void close_up_if_worth_it() {
    if (rows_.size() > 2 * kept_ + kFew) close_up();
  }
  Number writable(Number number, std::uint64_t oldest) {  // the row itself, or a new one that takes its place and holds anything; oldest: view
    return states_[number].shown < oldest ? number : replace(number, oldest);
  }
  Number replace(Number number, std::uint64_t oldest);

  const Placement& placement_;
  const Columns columns_;
  const std::size_t most_;
  RowMap<T> rows_;                              // also those that were dropped, until close_up()
  std::vector<State> states_;                   // by number
  std::size_t kept_ = 0, look_at_;              // look_at_: when so many are kept
  std::map<Clock, std::vector<Key>> ending_;    // by the last clock
  std::vector<Key> vain_, strays_;              // that came kVain times, or without being kept
  std::vector<Told> told_;                      // by shard
  std::uint64_t orphanings_ = 0;
  const std::shared_ptr<Views> views_ = std::make_shared<Views>();
  std::vector<std::uint64_t> held_;             // by block of rows_: the last view that holds its memory
  struct Behind {
    Number number;
    std::uint64_t shown;                        // the last view that shows it
  };
  std::deque<Behind> behind_;                   // rows that were replaced
  std::vector<std::vector<Clock>> asked_;       // by worker and number: the age of its request that is not answered, or kNothing
};

extern template class Copies<float>;
extern template class Copies<double>;
extern template class Copies<std::int32_t>;
extern template class Copies<std::int64_t>;

}  // namespace shoal::table

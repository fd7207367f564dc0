// One member's side of a table: copies of the rows that its workers have read, and what they have added that is not yet in them.
//
// A reader sees   base + own parts that the server had not counted in + what it has added and has not left (added.h),
// added in that order. Parts are kept until their server says that they are in its rows; then they are added to the copies that are older
// than that, once.
//
// Invariants
//   1. A copy's base holds every increment with a timestamp below its age, and of this member's parts those up to `included`.
//   2. A part is in a copy's base or among those kept, never both: what came from the server overrides, what it confirmed is folded in. Where only some
//      columns of a row come, what the server has of this member's is folded in before (copies.h): to the others nobody else has added.
//   3. Where the table's rule steps, what is added is a gradient: it is in no read before the server has stepped, and nothing of it is kept.
//   4. Workers of one member see each other's increments as those of any other worker.
//   5. What is written goes to all holders of a shard (holders.h). Rows come from the first that counts; when that is another, the rows that were sent
//      before are asked for anew, behind everything that this member had sent to it.
//
// Threads: workers, each for itself, and the loop (take()).
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/table/copies.h"
#include "shoal/table/gate.h"
#include "shoal/table/heard.h"
#include "shoal/table/holders.h"
#include "shoal/table/kept.h"
#include "shoal/table/message.h"
#include "shoal/table/placement.h"
#include "shoal/table/reader.h"
#include "shoal/table/server_bytes.h"
#include "shoal/table/shard.h"
#include "shoal/table/spec.h"
#include "shoal/table/telemetry.h"
#include "shoal/table/turns.h"
#include "shoal/table/under_way.h"
#include "shoal/table/workers.h"
#include "shoal/table/write_gate.h"

namespace shoal::table {

// `worker` counts this member's own, from 0.
template <class T>
class Copy final : public Reader {
 public:
  struct Surroundings {                // send, now: any thread; what is sent leaves in the order of the calls
    Send send;
    Now now;
    std::size_t most_under_way;        // bytes to one shard (under_way.h)
    std::size_t most_copies;           // bytes (copies.h)
    std::shared_ptr<const ServerBytes> of_servers;
    std::shared_ptr<const BytesPool> bodies;  // memory for updates
  };
  // holders: by shard.
  Copy(const Spec& spec, const Workers& workers, net::Rank rank, const Placement& placement, std::vector<Holders> holders, const Surroundings& around);
  // Before anything comes: all workers are at that point of the table's history (kept.h).
  void begin_at(const Start& start);
  // Before anything comes: the order of all below is recorded, or kept to. again: go_on() is to be called, on the loop.
  void keep_order(std::unique_ptr<Order> order, const std::function<void()>& again);
  void go_on() { turns_->go_on(); }
  // What a worker does, when it is its turn; at once where no order is kept to. Every step of a worker is done so but ready(), which is its own.
  template <class Do>
  decltype(auto) in_turn(std::uint32_t worker, Step step, const net::Waiting& waiting, const Do& what) {
    if (!turns_) return what();
    waiting.until([&] { return is_turn(worker); }, *this, "its turn in the recorded order of table ", spec_.name);
    const Turns::Turn turn = turns_->turn(source_of(worker), step);
    return what();
  }
  bool is_turn(std::uint32_t worker) const { return !turns_ || turns_->is_turn(source_of(worker)); }
  void take(net::Rank from, Message message) override;
  void leaves(net::Rank server) override;
  void loses(net::Rank server) override;
  void all_know() override;
  void joins(std::size_t shard, net::Rank server, std::uint64_t handover, bool leads, net::Rank giver) override;
  void holds(std::size_t shard, net::Rank server, std::uint64_t handover) override;
  void lacks(std::size_t shard, net::Rank server, std::uint64_t handover) override;
  Clock reached() const override {
    const std::lock_guard lock(mutex_);
    return std::max(met_, base_.newest());
  }
  // mark: the number by which it waits for the end of what this member sends to it, first of questions, then of everything.
  void goes(std::size_t shard, net::Rank server, std::uint64_t handover, std::uint64_t mark) override;
  void parts(std::size_t shard, net::Rank server, std::uint64_t handover, std::uint64_t mark) override;
  void with_firsts(const std::function<void(const std::vector<net::Rank>& firsts)>& send) const override;
  // That another member hold this shard, in place of who answers.
  void move(std::size_t shard, net::Rank to);
  void retire_all() override;
  // By shard: who has all of it, whoever answers first.
  std::vector<std::vector<net::Rank>> holders() const;

  // Asks for those rows that are missing or too old. clocks: of this worker's, behind the one in which it is, after which they will not be read.
  void ask(std::uint32_t worker, std::span<const Key> keys, std::optional<Clock> clocks = {});
  // Whether read() has what it needs, from the key `at` on, which moves to the first that is waited for. arrivals() grows when that may change.
  bool ready(std::uint32_t worker, std::span<const Key> keys, std::size_t& at);
  // Whether the slowest workers are near enough for it, so that what is waited for is only on its way.
  bool may_read(std::uint32_t worker) const;
  // Row i to values[i * width ...]. After ready() and before the next tick. Returns the least age of the rows.
  Clock read(std::uint32_t worker, std::span<const Key> keys, std::span<T> values);
  View<T> view(std::uint32_t worker, std::span<const Key> keys);  // the same rows, where they lie
  // Whether a bound on values lets this worker add that. arrivals() grows when that may change.
  bool may_add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values) const;
  // Throws Error{invalid_argument} if a value is not finite; nothing is added then.
  void add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values);
  void assign(std::span<const Key> keys, std::span<const T> values);
  void forget(std::span<const Key> keys) {  // copies of rows that a function has written
    const std::lock_guard lock(mutex_);
    base_.forget(keys);
  }
  std::size_t assigning() const;      // messages of assign(), put() and reset() that servers have not confirmed
  // Rows as an image has them, each with the state of the rule; reset(): all rows of the table as nobody had written them. Others read either
  // after a barrier.
  void put(std::span<const Key> keys, std::span<const T> rows);
  void reset();
  void go_on_from(std::uint32_t worker, Clock clock) {  // at the next barrier, if that is later than its own
    const std::lock_guard lock(mutex_);
    clocks_[worker] = std::max(clocks_[worker], clock);
    added_.begin_anew(worker);
  }
  // What the servers do with gradients from this worker's clock on; of the same kind as before.
  void rule(std::uint32_t worker, const Rule& rule);
  void tick(std::uint32_t worker);
  // After a tick: whether the slowest worker is near enough for this one to go on, and servers have taken in enough of what it said.
  bool is_near(std::uint32_t worker) const;
  bool has_room(std::uint32_t worker) const;
  bool may_go_on(std::uint32_t worker) const { return is_near(worker) && has_room(worker); }
  std::size_t under_way(std::size_t shard) const {  // bytes of updates
    const std::lock_guard lock(mutex_);
    return under_way_.bytes(shard);
  }
  // With another consistency, from when all have met on: the same by all workers. Throws Error{invalid_argument} if the table cannot have it.
  void flush(std::uint32_t worker, const std::optional<Consistency>& next = {});
  bool flushed(std::uint32_t worker) const;  // by everybody, as often as by this worker
  Clock clock(std::uint32_t worker) const {
    const std::lock_guard lock(mutex_);
    return clocks_[worker];
  }
  Consistency consistency() const {
    const std::lock_guard lock(mutex_);
    return consistency_;
  }
  void waited(Cause cause, Nanoseconds time) {
    const std::lock_guard lock(mutex_);
    telemetry_.wait(cause, time);
  }
  Telemetry telemetry() const {
    const std::lock_guard lock(mutex_);
    Telemetry all = telemetry_;
    all.servers(*of_servers_);
    for (const Holders& holders : holders_) all.dropped = std::max(all.dropped, holders.dropped());
    return all;
  }
  std::string summary() const override { return telemetry().line(spec_.name + " (" + name(consistency()) + ")"); }
  std::size_t copies() const {        // of rows, that are kept
    const std::lock_guard lock(mutex_);
    return base_.size();
  }

 private:
  using Number = typename Copies<T>::Number;

  // Sources of an order: messages of each member, members that leave, this one's workers.
  static Order::Source source_of_messages(net::Rank from) { return 3 * from; }
  static Order::Source source_of_end(net::Rank from) { return 3 * from + 1; }
  static Order::Source source_of(std::uint32_t worker) { return 3 * worker + 2; }
  void hear(net::Rank from, Message message);
  void hear_end_of(net::Rank server);
  Turns::Look look(std::uint32_t worker, std::span<const Key> keys, std::size_t& at);
  void take_clock(std::size_t shard, net::Rank from, const Message& message);  // and what else tells one
  template <class Change>
  void change_holders(std::size_t shard, const Change& change);  // who holds it, or what they have told
  void settle(std::size_t shard, Instant told);  // what its servers have confirmed; told: their age, when
  void meet(Clock clock);
  void give_back(net::Rank server, std::size_t shard, const Message& stamp);
  void say(std::size_t shard, std::vector<Message> messages);  // to all holders
  void mark_gone();                   // for those that go, and are asked nothing any more
  void say_to(net::Rank server, std::size_t shard, std::vector<Message> messages);
  Clock needed(std::uint32_t worker) const;  // the age that its reads need
  bool sampled_are_near(std::uint32_t worker) const;
  void need(std::size_t shard) const;  // throws Error{mismatch} if it has left
  [[noreturn]] void refuse_left(std::size_t shard) const;
  bool request(std::uint32_t worker, std::span<const Key> keys);  // whether any were asked for
  // Calls take(i, number of the copy, its age) for each key, and then adds to row(i) what this worker has added and it lacks.
  template <class Take, class Row>
  void read_each(std::uint32_t worker, std::span<const Key> keys, const Take& take, const Row& row);
  void drop(bool all);                // copies that need not be kept; all: also those for which each is looked at, off the loop
  void hand_out(Kind kind, std::span<const Key> keys, std::span<const T> values);
  std::optional<double> bound() const;  // on values, now
  bool has_nothing_open(std::uint32_t worker) const {  // asked by that worker: nobody else adds to it
    const std::lock_guard lock(mutex_);
    return !added_.any_is_open(worker);
  }
  void send_open(std::uint32_t worker, Ends ends, Clock clock);
  void send_part(std::uint32_t worker, std::size_t shard, Ends ends, Clock clock);
  void send_early(std::size_t shard);  // before the clock is complete, where that may be

  const Spec spec_;
  const Workers workers_;
  const std::uint32_t first_worker_;
  const Placement& placement_;
  const Send send_;
  const Now now_;
  const std::uint64_t id_;
  const std::shared_ptr<const ServerBytes> of_servers_;
  const std::shared_ptr<const BytesPool> bodies_;
  std::unique_ptr<Turns> turns_;      // where an order is kept; its lock is taken before this one's

  mutable std::mutex mutex_;          // guards all below
  Telemetry telemetry_;
  std::vector<Holders> holders_;      // by shard
  struct Going {
    std::size_t shard;
    net::Rank server;
    std::uint64_t mark;
  };
  std::vector<Going> going_;          // servers that wait for this member's last question
  Clock met_ = 0;                     // the clock of the last barrier, at the server that told it first
  std::vector<Clock> clocks_;         // by worker; none: a member that only serves
  Copies<T> base_;
  std::vector<std::uint64_t> flushes_;   // by worker
  Added<T> added_;
  UnderWay under_way_;
  Heard heard_;
  std::vector<std::uint64_t> orphanings_;  // by worker, of copies, when it last looked
  DynamicGate dynamic_;
  WriteGate<T> write_gate_;           // under a policy that bounds values
  Consistency consistency_;
  std::optional<Consistency> next_;   // from the end of the barrier on
};

// What another sends first was not in what came before: all rows are asked for anew.
template <class T>
template <class Change>
void Copy<T>::change_holders(std::size_t shard, const Change& change) {
  const auto before = holders_[shard].first();
  change(holders_[shard]);
  if (before == holders_[shard].first()) return;
  settle(shard, Instant{});
  base_.orphan(shard);
  mark_gone();
}

extern template class Copy<float>;
extern template class Copy<double>;
extern template class Copy<std::int32_t>;
extern template class Copy<std::int64_t>;

}  // namespace shoal::table

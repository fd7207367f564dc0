// One server's part of a table: the rows of its buckets, the clocks of all workers, who waits for which age, and who is told what changed.
// A state machine without I/O: messages in, messages out.
//
// Rows are settled clock by clock, each clock when every worker has completed it, its batches added in the order of workers. Readers see
// what has arrived of later clocks, too, or under a policy of whole clocks settled rows only. So an exact cut at a clock is always at
// hand, and what a worker began and did not complete can be left out. Where the table has a rule that steps, whole clocks are one step
// each, with the mean of their workers' gradients; under other policies each batch is a step when it arrives.
//
// Invariants
//   1. Where increments are summed, settled rows hold exactly those with timestamps below the slowest worker's clock, and those before the last barrier.
//   2. A worker's batch is taken whole or not at all: its messages are kept until the one that ends it.
//   3. Under a policy that withholds, updates become part of the rows in the order in which they came, each when it fits (released.h).
//   4. What a lost worker added counts up to a clock that all servers agree on (last_clocks.h); settled rows that have more are taken back to what they
//      were, and settled again without it. Where what arrives is shown at once, all that arrived counts.
//   5. What is handed over (handover.h) is a function of the same messages that made the shard: settled rows have the same bits.
//   6. A request is answered as soon as the slowest worker that counts has completed the age that it needs.
//
// Threads: the transport's loop.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/calls.h"
#include "shoal/table/clocks.h"
#include "shoal/table/handover.h"
#include "shoal/table/image.h"
#include "shoal/table/kept.h"
#include "shoal/table/last_clocks.h"
#include "shoal/table/message.h"
#include "shoal/table/owned_rows.h"
#include "shoal/table/readers.h"
#include "shoal/table/released.h"
#include "shoal/table/spec.h"
#include "shoal/table/workers.h"

namespace shoal::table {

// The cut of a table for who asked for it by `request`: its rows as they are now.
using TakeCut = std::function<void(net::Rank by, const Message& request, const Spec& spec, Clock clock, const Rule& rule, std::unique_ptr<Image> image)>;

// What a server finds on its member.
struct Surroundings {
  Send send;
  Idle idle;
  TakeCut take_cut;
  Now now;
  OffLoop off_loop{};
  std::shared_ptr<const Functions> functions = std::make_shared<const Functions>();
  std::shared_ptr<ColdFile> cold{};                 // none: rows are in memory
  std::shared_ptr<const BytesPool> bodies = BytesPool::of_process();  // memory for rows that are sent to readers
};

class Server {
 public:
  virtual ~Server() = default;
  virtual const Spec& spec() const = 0;
  // That member reads nothing more.
  virtual void leaves(net::Rank reader) = 0;
  // All that was sent to that member has left.
  virtual void drained(net::Rank reader) = 0;
  // What is said to the server of this table; to open it: that member is told of its clocks from here on. Throws Error{mismatch} if that member cannot have meant it.
  virtual void take(net::Rank from, Message message) = 0;

  // The job goes on without that member: what comes of it is not taken any more.
  virtual void lose(net::Rank member) = 0;
  virtual Clock completed(std::uint32_t worker) const = 0;
  virtual Clock reached() const = 0;                // by all
  virtual std::uint64_t met() const = 0;            // barriers that are over
  // What these workers, of lost members, added from these clocks on does not count, and nobody waits for them.
  virtual void cut(const Last& last) = 0;

  // To that member, by this number, once all that are not silent have marked their streams; what it wants comes as `more`.
  virtual void give(net::Rank to, std::uint64_t number, const std::vector<bool>& silent) = 0;
  virtual void give_up() = 0;
  // A new shard: what it is comes of that member.
  virtual void expect(net::Rank giver, std::uint64_t number) = 0;
  virtual bool is_whole() const = 0;                // nothing is expected any more
  // It goes: whether all that was asked has its answer; and from then on it is told nothing more by some, and speaks for nobody.
  virtual bool is_idle() const = 0;
  virtual void part() = 0;
  virtual bool has_parted() const = 0;

  // The members are to meet anew (kept.h): nothing comes to it any more, and nothing is under way in it.
  virtual void stop() = 0;
  virtual Kept kept(std::size_t shard) const = 0;
  // A new shard: it goes on at that point with the rows of the one that was kept, which is used no more.
  virtual void take_over(Server& kept, const Point& at, const Consistency& consistency) = 0;
};

template <class T>
class Shard final : public Server {
 public:
  // survives: members may be lost.
  Shard(const Spec& spec, const Workers& workers, net::Rank members, bool survives, const Surroundings& around);
  ~Shard() override { calls_->end(); }
  const Spec& spec() const override { return spec_; }
  void leaves(net::Rank reader) override;
  void drained(net::Rank reader) override { readers_.drained(reader); }
  void take(net::Rank from, Message message) override;
  void lose(net::Rank member) override;
  Clock completed(std::uint32_t worker) const override { return clocks_.completed(worker); }
  Clock reached() const override { return clocks_.slowest(); }
  std::uint64_t met() const override { return met_; }
  void cut(const Last& last) override;
  void give(net::Rank to, std::uint64_t number, const std::vector<bool>& silent) override;
  void give_up() override { giving_.reset(); }
  void expect(net::Rank giver, std::uint64_t number) override;
  bool is_whole() const override { return !receiving_; }
  bool is_idle() const override;
  void part() override { parted_ = true; }
  bool has_parted() const override { return parted_; }
  void stop() override;
  Kept kept(std::size_t shard) const override;
  void take_over(Server& kept, const Point& at, const Consistency& consistency) override;

 private:
  using Number = typename OwnedRows<T>::Number;
  using Batch = std::vector<Message>;               // of one worker in one clock
  using Batches = std::map<std::uint32_t, Batch>;   // by worker
  struct Settled {                                  // a clock that may have to be taken back
    Clock clock, until;                             // until: the slowest then
    std::uint64_t met;                              // barriers before it
    Rule rule;
    Batches batches;
    RowMap<T> before;                               // rows as they were, by number
  };
  struct Held {                                     // an update, or its worker's flush behind it
    net::Rank from;
    Batch messages;
  };

  template <class Visit>                            // visit(number, values)
  void for_each_row(const Message& message, const Visit& visit);
  template <class Visit>                            // visit(first, count, values): of rows one behind the other (RowMap::run)
  void for_each_run(const Message& message, const Visit& visit);
  void update(net::Rank from, Message message);
  void count_in(net::Rank from, Batch batch);        // a whole update
  void count_in_held();                             // what need not be held back any more
  std::vector<Amount> amounts(const Batch& batch) const;
  void release_all();                               // where values are bounded: what came before they were, or by the giver, is to be seen, too
  void tell_seen();                                 // to those whose updates all readers have now
  void take_batch(net::Rank from, const Header& last, Batch batch);
  void advance(net::Rank from);                     // the worker that was slowest may have completed a clock
  bool rise();
  bool cuts_workers() const;                        // whether lost ones count up to a clock
  bool meet();                                      // if all are at the barrier
  void settle_through(Clock clock);                 // everything pending with timestamps below
  void settle(Clock clock, Batches batches);
  void add_up(const Batches& batches, const Rule& rule, bool overlaid);
  void take_back(const Last& last, std::unordered_set<Number>& touched);
  void lay_anew(const std::unordered_set<Number>& touched);
  void request(net::Rank from, const Message& message);
  void assign(net::Rank from, const Message& message);
  void set_out_of_time(Number number, std::span<const T> values, std::unordered_set<Number>& overlaid);
  std::string write(std::span<const Number> numbers, std::span<const T> values);  // as assigned; why not, or nothing
  void flush(net::Rank from, const Message& message);
  void put(net::Rank from, const Message& message);  // or reset
  void save(net::Rank from, Message message);
  void cut_through(Clock clock);                    // those that wait for this clock or an earlier one

  void answer(net::Rank to, const Message& request);
  void answer_waiting();
  void go_on_giving();
  Message state(std::deque<Message>& batches) const;
  void receive(net::Rank from, Message message);
  void begin();                                     // with what was received
  void unpack(Unpacked& packed, std::deque<Message>& batches);
  void go_back(const Point& to);                    // rows are as they were there
  void forget_first_settled();

  const Spec spec_;
  const Workers workers_;
  const Send send_;
  const TakeCut take_cut_;
  const std::uint64_t id_;
  const bool survives_;                             // members may be lost

  Consistency consistency_;
  std::string next_;                                // from the barrier on at which workers wait; empty: the same
  OwnedRows<T> rows_;
  Rules rules_;
  std::vector<Batch> arriving_;                     // by worker: not closed
  Clocks clocks_;
  std::uint64_t met_ = 0;                           // barriers that are over
  bool undecided_ = false;                          // a worker is lost, and what of it counts is not agreed: until then no clock rises
  std::map<Clock, Batches> pending_;                // not settled, by timestamp
  std::deque<Settled> settled_;                     // where another server may not have completed the clock
  Point first_;                                     // all since then is in settled_
  std::multimap<Clock, std::pair<net::Rank, Message>> waiting_;  // requests, by the age that they need
  std::multimap<Clock, std::pair<net::Rank, Message>> cuts_;     // snapshots that were asked for, by their clocks
  Released released_;                               // under a policy that bounds values
  Readers<T> readers_;
  const std::shared_ptr<Calls<T>> calls_;
  std::deque<Held> held_;                           // in the order in which they came
  std::optional<Giving<T>> giving_;                 // it is being handed over
  std::optional<Receiving> receiving_;              // to this member, which has not all of it
  std::vector<std::uint64_t> had_;                  // by rank: how many of the next messages that are written the giver had already
  bool parted_ = false;
};

template <class T>
template <class Visit>
void Shard<T>::for_each_row(const Message& message, const Visit& visit) {
  for_each_run(message, [&](Number first, std::size_t count, std::span<const T> values) {
    const std::size_t width = values.size() / count;
    for (std::size_t i = 0; i < count; ++i) visit(static_cast<Number>(first + i), values.subspan(i * width, width));
  });
}

// Where keys do not follow each other as they once came, each place where a row may be is a cache line that is far away: then where the next few are is
// guessed before the first of them is visited, and slots are on their way before that.
template <class T>
template <class Visit>
void Shard<T>::for_each_run(const Message& message, const Visit& visit) {
  constexpr std::size_t few = 16;
  const auto keys = message.keys();
  const auto values = message.values<T>();
  const std::size_t width = has_state(message.header.kind) ? rows_.full_width() : spec_.width;
  std::array<Number, few> guess;
  Number number = RowMap<T>::kNone;
  for (std::size_t begin = 0; begin < keys.size();) {
    if (const std::size_t run = rows_.run(number + 1, keys.subspan(begin)); run > 0) {
      visit(number + 1, run, values.subspan(begin * width, run * width));
      number += static_cast<Number>(run);
      begin += run;
      continue;
    }
    const std::size_t end = std::min(begin + few, keys.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (i + few < keys.size()) rows_.expect(keys[i + few]);
      guess[i - begin] = rows_.guess(keys[i]);
    }
    for (std::size_t i = begin; i < end; ++i) {
      number = rows_.number_of(keys[i], guess[i - begin]);
      visit(number, std::size_t{1}, values.subspan(i * width, width));
    }
    begin = end;
  }
}

std::unique_ptr<Server> make_shard(const Spec& spec, const Workers& workers, net::Rank members, bool survives, const Surroundings& around);

}  // namespace shoal::table

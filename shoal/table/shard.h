// One server's part of a table: the rows of its buckets, the clocks of all workers, who waits for which age, and who is told what changed.
// A state machine without I/O: messages in, messages out.
//
// A row is kept as `settled`, the sum of all whole clocks that every worker has completed, added in the order of (clock, worker); and, while
// increments of later clocks have arrived, as `live`, which has them too. Readers see `live`, or under a policy of whole clocks `settled`.
// So an exact cut at a clock is always at hand, and what a worker began and did not complete can be left out.
//
// Invariants
//   1. `settled` holds exactly the increments with timestamps below min_, and those before the last flush.
//   2. A worker's batch is taken whole or not at all: its messages are kept until the one that closes it.
//   3. Rows leave before the clock message that promises their age, on the same stream.
//   4. A request is answered as soon as the slowest worker has completed the age that it needs.
//
// Threads: the transport's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/message.h"
#include "shoal/table/spec.h"
#include "shoal/table/workers.h"

namespace shoal::table {

using Send = std::function<void(net::Rank to, std::vector<Message> messages)>;

class Server {
 public:
  virtual ~Server() = default;
  virtual const Spec& spec() const = 0;
  // An update, request, assign or flush of this table. Throws Error{mismatch} if that member cannot have meant it.
  virtual void take(net::Rank from, Message message) = 0;
};

template <class T>
class Shard final : public Server {
 public:
  Shard(const Spec& spec, const Workers& workers, net::Rank members, Send send);
  const Spec& spec() const override { return spec_; }
  void take(net::Rank from, Message message) override;

 private:
  using Number = typename RowMap<T>::Number;
  static constexpr net::Rank kNobody = ~net::Rank{0}, kSeveral = kNobody - 1;

  struct Worker {
    Clock completed = 0;                            // clocks
    std::vector<Message> arriving;                  // of a batch that is not closed
    std::optional<Clock> flushed_at;                // its clock at the barrier at which it waits
  };

  void update(net::Rank from, Message message);
  void advance(net::Rank from);
  void request(net::Rank from, const Message& message);
  void assign(net::Rank from, const Message& message);
  void flush(const Message& message);

  Number row(Key key, Number near);                 // in settled_, with initial values if it is new
  void add_now(net::Rank from, const Message& message);
  void overlay(net::Rank from, const Message& message);
  void settle(net::Rank from, const Message& message);
  void settle_through(Clock clock);                 // everything pending with timestamps below
  void changed(Number number, net::Rank by);
  std::span<const T> visible(Number number) const;

  void answer_waiting();
  void answer(net::Rank to, const Message& request);
  void push();                                      // what changed, to who has read it and did not change it alone
  void announce(net::Rank to, Kind kind = Kind::clock);
  std::vector<Message> rows_for(net::Rank to, std::span<const Number> numbers) const;
  bool subscribed(Number number, net::Rank rank) const { return subscribers_[number * words_ + rank / 64] >> (rank % 64) & 1; }

  const Spec spec_;
  const Workers workers_;
  const net::Rank members_;
  const Send send_;
  const std::uint64_t id_;

  std::vector<Worker> clocks_;                      // by worker
  Clock min_ = 0;                                   // completed by all
  std::vector<std::uint64_t> received_;             // by rank: its last batch that is closed
  std::vector<std::uint64_t> included_;             // by rank: its last batch before which all are in what readers see
  std::map<Clock, std::map<std::uint32_t, std::vector<Message>>> pending_;  // by timestamp and worker
  std::multimap<Clock, std::pair<net::Rank, Message>> waiting_;             // requests, by the age that they need

  RowMap<T> settled_;
  std::vector<net::Rank> changed_by_;               // by number in settled_: since it was pushed last
  const std::size_t words_;                         // of subscribers, a row
  std::vector<std::uint64_t> subscribers_;          // bits by rank
  std::vector<Number> changed_;                     // numbers in settled_
  std::vector<Number> live_number_;                 // by number in settled_: in live_, or kNone
  RowMap<T> live_;
  std::vector<std::uint32_t> later_;                // by number in live_: batches not settled; 0: settled_ says it all
};

extern template class Shard<float>;
extern template class Shard<double>;
extern template class Shard<std::int32_t>;
extern template class Shard<std::int64_t>;

std::unique_ptr<Server> make_shard(const Spec& spec, const Workers& workers, net::Rank members, Send send);

}  // namespace shoal::table

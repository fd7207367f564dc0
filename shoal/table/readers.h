// The members that read a server's rows, and what each has been told: rows that changed, and behind them the clock that they are complete up to.
//
// Invariants
//   1. Rows leave before the clock message that promises their age, on the same stream.
//   2. At most one round of pushed rows is on its way to a reader, as much as its link bears in a moment, what it needs next and what has
//      changed most first (untold.h, pace.h); what is left, and what changes meanwhile, is told in the next, once.
//   3. Of a row that is pushed travel at least the columns that others than the reader's workers have changed since it was sent the row last. What
//      these have added to the other columns is what the message says of them (Header::sequence, clock), and they know it.
//
// Threads: the transport's loop. Lifetime: what it is made of outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/clocks.h"
#include "shoal/table/message.h"
#include "shoal/table/owned_rows.h"
#include "shoal/table/pace.h"
#include "shoal/table/packed.h"
#include "shoal/table/released.h"
#include "shoal/table/shown.h"
#include "shoal/table/spec.h"
#include "shoal/table/workers.h"

namespace shoal::table {

using Send = std::function<void(net::Rank to, std::vector<Message> messages)>;
using Now = std::function<Instant()>;
using Idle = std::function<bool(net::Rank to)>;  // whether all that was sent to it has left

template <class T>
class Readers {
 public:
  using Number = typename OwnedRows<T>::Number;
  struct Of {                                       // a server's table
    const Spec& spec;
    const Workers& workers;
    const Clocks& clocks;
    const Consistency& consistency;
    const std::uint64_t& met;                       // barriers that are over
    OwnedRows<T>& rows;
    Released& released;
  };
  Readers(const Of& of, net::Rank members, Send send, Idle idle, Now now);

  void admit(net::Rank reader);                     // it has opened the table, and is told of its clocks from here on
  void lose(net::Rank reader);
  bool is_lost(net::Rank reader) const { return readers_[reader].lost; }
  void leaves(net::Rank reader) {
    if (shown_) shown_->leaves(reader);
  }

  // Its own batch is closed; it is `included` in what it reads, as are all before it; or it came too late.
  void closes(const Header& batch, net::Rank of, bool included);
  void drops(net::Rank of) { ++readers_[of].dropped; }
  void include_all();
  std::uint64_t received(net::Rank of) const { return readers_[of].received; }  // the sequence of its last batch that is closed
  // What that row's gradients had summed to when the reader was sent it that its worker had read, where the rule asks; empty: not known.
  std::span<const T> shown(net::Rank reader, Number number, std::uint64_t heard) const {
    return shown_ ? shown_->at(reader, number, heard) : std::span<const T>{};
  }
  void forget_shown() {                             // rows have another state
    if (shown_) shown_->clear();
  }

  void answer(net::Rank to, const Message& request);
  void unsubscribe(net::Rank reader, const Message& message);
  void drained(net::Rank reader);                   // all that was sent to it has left
  // What changed of what it has read, and the clock; later, if it is busy with the last.
  void tell(net::Rank reader);
  void tell_all() {
    for (const net::Rank rank : of_.workers.ranks()) tell(rank);
  }
  void end_barrier();                               // for all of them
  void announce(net::Rank to, Kind kind = Kind::clock);
  void announce_all() {
    for (net::Rank rank = 0; rank < size(); ++rank) announce(rank);
  }

  net::Rank size() const { return static_cast<net::Rank>(readers_.size()); }
  // Who reads, and what is in what it reads, for another server.
  void pack(Packed& packed) const;
  void unpack(Unpacked& packed);

 private:
  struct Reader {                                   // a member
    bool admitted = false, lost = false, untold = false;  // untold: the clock or rows have changed since it was told
    Clock promised = kLastClock;                    // at most, because the last round left rows; kLastClock: it left none
    Pace pace;
    std::uint64_t received = 0;                     // its last batch that is closed
    std::uint64_t included = 0;                     // its last batch before which all are in what it reads
    std::uint32_t dropped = 0;                      // its batches that came too late
    std::uint64_t unsubscribed = 0;                 // the number of its last unsubscribe, as it has told
  };
  void push(net::Rank reader, bool all = false);
  void tell_clocks(net::Rank reader);               // each worker's, where the policy wants them
  void stamp(net::Rank reader);                     // behind what it was told
  Header header_to(net::Rank reader) const;         // of rows
  std::vector<Message> rows_to(net::Rank reader, const Header& header, std::span<const Number> numbers);

  const Of of_;
  const std::uint64_t id_;
  const Send send_;
  const Idle idle_;
  const Now now_;
  std::vector<Reader> readers_;                     // by rank
  std::optional<Shown<T>> shown_;                   // where the rule revises steps
};

extern template class Readers<float>;
extern template class Readers<double>;
extern template class Readers<std::int32_t>;
extern template class Readers<std::int64_t>;

}  // namespace shoal::table

// Bytes between the members of a job, by priority. The one interface between everything above and the
// network: the same code runs over TCP (tcp.h), inside one process on a scripted network (inproc.h), and in
// the simulator.
//
// A *stream* is an ordered flow of bytes from one member to another under one Tag. Sender and receiver cut
// it independently: a send of 1 MB may meet four receives of 256 KB. A transport cuts it once more, into
// frames of about a millisecond of the link, so that an urgent byte overtakes a bulk one between two frames.
//
// Threads. All handlers run on the transport's loop, one at a time. `post`, `drive` and what says "any thread" may be
// called from any thread; every other call must come from the loop. Handlers must not block.
//
// Lifetime. Memory passed to send() and receive() stays valid until its handler has run. Every handler runs
// exactly once: with nullptr on success, else with the error (peer_lost, cancelled) that ended the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"

namespace shoal::net {

using Rank = std::uint32_t;  // 0 .. size-1 in this transport's job or group

// Names a stream between two members. `operation` must be the same on both sides and is never used again, not after
// close() either: late bytes of the first would be taken for the second's. `lane` tells apart the streams of one operation.
struct Tag {
  std::uint64_t operation = 0;
  std::uint32_t lane = 0;
  auto operator<=>(const Tag&) const = default;
};
// Rooms that share a transport keep their operations apart by a channel in the top 16 bits.
inline constexpr std::uint64_t operation_in(std::uint16_t channel, std::uint64_t sequence) {
  return (std::uint64_t{channel} << 48) | (sequence & 0xffff'ffff'ffffu);
}

// Strict order between classes; inside one, smaller (value, iteration) first, then first come first served.
enum class Class : std::uint8_t {
  urgent,      // at most 4 KB a send; rides the control connection, past every bulk byte. Without credit: what comes before
               // its receive is kept there, up to 4 MB a sender, so the sender itself bounds what it has under way
  bulk,        // slices of tensors, by priority
  background,  // replication and checkpoints: a guaranteed small share (1/16), else only idle time
};
struct Priority {
  Class cls = Class::bulk;
  std::uint32_t value = 0;      // first use in the next forward pass: 0 is needed first
  std::uint64_t iteration = 0;  // an older iteration goes first among equal values
};
inline constexpr Priority kUrgent{Class::urgent, 0, 0};
inline constexpr std::size_t kUrgentLimit = 4096;  // bytes of one urgent send

using Failure = std::shared_ptr<const Error>;         // nullptr: success
using Done = std::function<void(const Failure&)>;
using Taken = std::function<void(const Failure&, Bytes)>;

enum class OnPeerLost : std::uint8_t {
  fail,    // the first loss ends the transport
  shrink,  // the others go on: what they send to the lost member or wait for from it fails, all else goes its way
  rejoin,  // as shrink, until others have come in place of those that were lost: then all join anew (join_again() of job.h)
  regrow,  // the same, and nobody waits for them: who goes on meanwhile joins beside that (nn/regrowth.h)
};
inline bool goes_on(OnPeerLost policy) { return policy != OnPeerLost::fail; }
inline bool replaces_lost(OnPeerLost policy) { return policy == OnPeerLost::rejoin || policy == OnPeerLost::regrow; }

// Frames that left without a pause between them: each was ready when the one before to the same member had left, so that nothing but the network decided when
// it came. Neither a sender that is late nor one that waits to be asked counts. Not through shared memory, not of urgent streams.
struct Trains {
  std::uint64_t bytes = 0;    // payload as it passed, packed or not, without each train's first frame; up to frames that found the kernel's buffer full, or empty (train_counter.h)
  std::uint64_t beside = 0;   // what passed over all links of this member meanwhile in the same direction, these included
  double seconds = 0;         // from each such frame to the next
};

struct LinkStats {            // totals since the transport began, per peer
  std::uint64_t sent = 0;     // payload bytes handed to the kernel, or to a member of this host
  std::uint64_t saved = 0;    // of these, what packing kept off the wire (core/packed_words.h)
  std::uint64_t lent = 0;     // of all, what a member of this host read where it lay, in lendable memory: a copy less
  std::uint64_t received = 0; // payload bytes taken from it
  std::uint64_t wire_sent = 0, wire_received = 0;  // the same with frame headers, credit and heartbeats
  Trains out, in;             // to it, from it
  double round_trip = 0;      // seconds, of heartbeats; 0 until known
  bool shared_memory = false; // streams go through memory of this host, no wire
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;

  // --- the loop
  // Runs fn on the loop, after everything posted before it by the same thread.
  virtual void post(std::function<void()> fn) = 0;
  virtual bool on_loop() const = 0;
  virtual Instant now() const = 0;  // any thread
  // Runs fn on the loop at `when`; cancel() makes sure it does not run any more. From the loop only.
  virtual std::uint64_t at(Instant when, std::function<void()> fn) = 0;
  virtual void cancel(std::uint64_t timer) = 0;
  // Blocks the calling thread (never the loop) until ready() or the deadline; returns ready(). ready() is
  // evaluated under no lock and must be cheap and thread-safe; whoever makes it true on the loop needs to do
  // nothing more. While it waits the caller may run the loop itself, so that a small operation costs no
  // thread switch. It looks a few times,
  // letting others run in between, before it sleeps; a long wait sleeps at once.
  virtual bool drive(const std::function<bool()>& ready, Instant deadline) = 0;

  // --- streams
  // Appends bytes to the stream `tag` to `to`. done runs when they are handed to the kernel (memory free again).
  virtual void send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) = 0;
  // Takes the next into.size() bytes of the stream `tag` from `from`; several receives of one stream are filled
  // in the order they were posted. done runs when `into` is full. priority orders the credit that this member
  // grants among its senders; urgent streams need none.
  virtual void receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) = 0;
  // The same of memory that others hold, too, and that nobody writes any more: who takes it on this host may have it where it lies, for as long as it
  // holds it, whatever becomes of this transport.
  virtual void give(Rank to, Tag tag, Priority priority, Bytes bytes, Done done) {
    const std::span<const std::byte> all = bytes;
    send(to, tag, priority, all, [bytes = std::move(bytes), done = std::move(done)](const Failure& why) { done(why); });
  }
  // As receive, of memory to be read only: new, or where all of it lies in lendable memory of a member of this host who gave it, that.
  virtual void take(Rank from, Tag tag, Priority priority, std::size_t size, Taken done) {
    const Bytes all(size);
    receive(from, tag, priority, all, [all, done = std::move(done)](const Failure& why) { done(why, why ? Bytes() : all); });
  }
  // Ends both directions of every stream of `operation`: waiting handlers run with `why`, later bytes under it
  // are dropped. Not told to the peers: see fail().
  virtual void close(std::uint64_t operation, const Failure& why) = 0;

  // --- failure
  // Under OnPeerLost::fail the first loss of a peer ends the transport: every waiting and later handler gets the same Failure, and the
  // survivors tell each other so that all end within the same half second. It reads
  // "rank 2 (hostb) was lost: connection closed; it last did: step 12, all-reduce of fc1.weight".
  // Where the job goes on only who is cut off, or given up by the others, ends so; the others agree whom they go on without (losses.h).
  virtual Failure failure() const = 0;                 // any thread; nullptr while all is well
  virtual void on_failure(std::function<void(const Failure&)> handler) = 0;  // from the loop; added, not replaced
  virtual OnPeerLost on_peer_lost() const = 0;         // any thread
  // Why that member is lost while this one goes on; nullptr while it is not. Any thread.
  virtual Failure lost(Rank peer) const = 0;
  // Runs once for each member that is lost while this one goes on, those before the call included. From the loop; added, not replaced.
  virtual void on_lost(std::function<void(Rank, const Failure&)> handler) = 0;
  // Tells every member that this one gives up (a mismatch, an exception) and ends the transport with `why`.
  virtual void fail(const Error& why) = 0;
  // What this member does, for its peers' error lines; carried by heartbeats. Any thread.
  virtual void doing(std::string activity) = 0;

  virtual LinkStats link(Rank peer) const = 0;         // any thread
  // Memory from which members of this host read what is sent: one copy less. nullptr: there is none, or nobody who reads. It stays while
  // somebody holds it, also beyond the transport.
  virtual std::shared_ptr<std::byte> lendable(std::size_t) { return nullptr; }  // any thread
  virtual std::string host(Rank peer) const = 0;       // as its member named itself
};

}  // namespace shoal::net

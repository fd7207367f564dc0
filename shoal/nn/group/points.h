// Point-to-point messages of a group, matched by tag: send, receive, receive from anybody.
//
// A note announces each message (tag and size); its bytes travel in a stream of their own, so messages overtake one
// another as their receives are posted. Up to kEager unmatched messages a pair send their bytes at once (a send is then
// done when the kernel has them); later ones wait until they are matched. What a member stores for its peers is
// thereby bounded by its peers' open sends. Messages of one pair and tag are matched in the order they were sent.
//
// Threads: the transport's loop only. Lifetime: transport and notes outlive it; destroy on the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shoal/nn/group/notes.h"

namespace shoal::nn {

class Points {
 public:
  static constexpr std::uint64_t kEager = 256;
  using Received = std::function<void(const net::Failure& failure, net::Rank source)>;

  // channel: its own in the transport (net::operation_in). Takes NoteKind::message, taken and verdict.
  Points(net::Transport& transport, Notes& notes, std::uint16_t channel);

  // done runs once; Error{timeout} after `patience`, Error{mismatch} where the receiver expects another size.
  void send(net::Rank to, std::uint32_t tag, std::span<const std::byte> bytes, Nanoseconds patience, net::Done done);
  // from: nullopt takes the first message under `tag` from anybody.
  void receive(std::optional<net::Rank> from, std::uint32_t tag, std::span<std::byte> into, Nanoseconds patience,
               Received done);
  void end(const net::Failure& why);  // everything that waits, and all that comes later

 private:
  struct Sending {
    net::Rank to;
    std::uint32_t tag;
    std::span<const std::byte> bytes;
    net::Done done;
    std::uint64_t timer;
  };
  struct Receiving {
    std::uint64_t id;
    std::optional<net::Rank> from;
    std::uint32_t tag;
    std::span<std::byte> into;
    Received done;
    std::uint64_t timer;
  };
  struct Announced {  // a message that nobody has asked for yet
    net::Rank from;
    Note note;
  };
  struct Arriving {   // a matched message whose bytes are on the way
    std::uint64_t id;
    net::Rank from;
    std::uint32_t tag;
    Received done;
    std::uint64_t timer;
  };

  std::uint64_t stream_of(net::Rank from, std::uint64_t number) const;
  void launch(std::uint64_t number);
  void finish_send(std::uint64_t number, const net::Failure& failure);
  void finish_receive(std::uint64_t stream, const net::Failure& failure);
  void announced(net::Rank from, const Note& note);
  void judged(net::Rank from, const Note& note);
  void match(Receiving receiving, net::Rank from, const Note& note);
  void acknowledge(net::Rank from, const Note& note, std::uint32_t verdict, std::uint64_t expected);
  void receive_timed_out(std::uint64_t id, Nanoseconds patience);

  net::Transport& transport_;
  Notes& notes_;
  const std::uint16_t channel_;
  net::Failure ended_;
  std::uint64_t next_number_ = 0, next_receive_ = 0;
  std::map<std::uint64_t, Sending> sending_;        // by number
  std::vector<std::uint64_t> unmatched_;            // by receiver: eager messages that it has not acknowledged
  std::vector<std::uint64_t> to_acknowledge_;       // by sender: eager messages matched since the last note
  std::list<Receiving> receiving_;                  // in the order posted
  std::deque<Announced> announced_;                 // in the order arrived
  std::map<std::uint64_t, Arriving> arriving_;      // by stream
  std::shared_ptr<Points*> self_;                   // handlers hold it weakly: they may run after us
};

}  // namespace shoal::nn

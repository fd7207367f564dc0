// What those who come are told while the others train on (nn/regrowth.h), so that nobody waits for a large state: pieces of bytes in order, over the job that they
// will share. The first is the state as it was between two steps, each after it what a step did to it. All who train have each piece alike, and each gives
// its share of it, so that no link but those of who comes carries much of it.
//
// Threads: one, never the loop. Lifetime: the transport outlives both ends. An operation (net::Tag) serves one feed of a transport.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::collective {

class Feed {
 public:
  struct Share {
    net::Rank giver, givers;  // which of how many
  };
  Feed(net::Transport& transport, std::vector<net::Rank> to, std::uint64_t operation, Share share);
  ~Feed();  // what has not left stays
  // Copies its share of the piece, which lies in these parts one behind the other: a large state is never put together. Returns at once where few bytes are under
  // way behind the first piece; else waits for some to leave, no longer than `patience`: a feed that is slower than training does not fill this member's memory.
  // Returns whether they have left. by_first: the piece is the first giver's, whole; the others have nothing like it, or give nothing.
  using Parts = std::vector<std::span<const std::byte>>;
  bool give(const Parts& parts, Nanoseconds patience, bool by_first = false);
  bool is_first() const { return share_.giver == 0; }
  // The state has not left yet, or a piece before the latest. As the first giver sees it, for all: each sees another moment, and of short steps hardly one at
  // which none is behind. Not of a feed that had to wait: training would be held up by it to its end, so all rather wait for the rest once.
  bool is_behind() const { return share_.giver == 0 && !is_slower_ && (under_way_->states > 0 || under_way_->sends > to_.size()); }
  bool has_left() const { return under_way_->sends == 0; }  // all of it

 private:
  struct UnderWay {
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<std::size_t> sends = 0, states = 0;  // the first pieces are counted in both
  };
  net::Transport& transport_;
  const std::vector<net::Rank> to_;
  const std::uint64_t operation_;
  const Share share_;
  const std::shared_ptr<UnderWay> under_way_ = std::make_shared<UnderWay>();
  bool has_begun_ = false, is_slower_ = false;
};

// Its other end: from whichever members give. Two pieces at most are under way or wait here, so that who follows is never far behind of what has left. One that ends
// before it has followed to the end leaves nobody waiting: what still comes is thrown away for as long as the transport lives.
class Follower {
 public:
  Follower(net::Transport& transport, std::uint64_t operation);
  ~Follower();
  // Throws Error{peer_lost} when any member is lost, or leaves, before it is there; Error{mismatch} where they do not give the same.
  Bytes next();
  void give_up();  // what comes from here on is thrown away: nobody has to wait with it

 private:
  struct Arrivals;
  net::Transport& transport_;
  const std::shared_ptr<Arrivals> arrivals_;
};

}  // namespace shoal::collective

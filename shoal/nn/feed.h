// What those who come are told while the others train on (session.h), so that nobody waits for a large state: pieces of bytes in order, from one who trains,
// over the job that they will share. The first is the state as it was between two steps, each after it what a step did to it.
//
// Threads: one, never the loop. Lifetime: the transport outlives both ends. An operation (net::Tag) serves one feed of a transport.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::nn {

class Feed {
 public:
  Feed(net::Transport& transport, std::vector<net::Rank> to, std::uint64_t operation);
  ~Feed();  // what has not left stays
  // Returns at once where few bytes are under way behind the first piece; else waits for some to leave, no longer than `patience`: a feed that is slower
  // than training does not fill this member's memory.
  void give(std::string piece, Nanoseconds patience);
  // A piece before the latest has not left yet. Not of a feed that had to wait: training would be held up by it to its end, so all rather wait for the rest once.
  bool is_behind() const { return !is_slower_ && under_way_->sends > to_.size(); }

 private:
  struct UnderWay {
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<std::size_t> sends = 0;
  };
  net::Transport& transport_;
  const std::vector<net::Rank> to_;
  const std::uint64_t operation_;
  const std::shared_ptr<UnderWay> under_way_ = std::make_shared<UnderWay>();
  bool has_begun_ = false, is_slower_ = false;
};

// Its other end: from whichever member gives.
class Follower {
 public:
  Follower(net::Transport& transport, std::uint64_t operation);
  ~Follower();
  std::string next();  // throws Error{peer_lost} when any member is lost, or leaves, before it is there

 private:
  struct Heard {
    std::vector<std::uint64_t> sizes;  // of the next piece, by who gives it
    std::atomic<int> from = -1;        // who has said so
    std::atomic<bool> lost = false;    // somebody
  };
  void expect_size(net::Rank from);  // the loop
  void wait(const std::function<bool()>& ready);
  net::Transport& transport_;
  const net::Tag tag_;
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
};

}  // namespace shoal::nn

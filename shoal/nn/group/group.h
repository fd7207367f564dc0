// One c10d process group's place on the network, without torch: its job, its collectives in their common order, its
// point-to-point messages, deadlines, and the comparison of what members believe they are doing.
//
// A collective gets the next sequence number of the group; members call them in the same order, so equal numbers
// are the same operation. A member that has waited in one for a second tells the others what it waits in (at once, and
// before any byte moves, with Settings::check). They compare: two that differ end the group on every member with
// the same Error{mismatch}. A deadline can say who has not come.
//
// Threads: any, of the process that made it (a forked child gets Error{unsupported}). done handlers run on the
// transport's loop. After close() everything ends with Error{cancelled}.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "shoal/collective/select.h"
#include "shoal/net/job.h"
#include "shoal/nn/group/collect.h"
#include "shoal/nn/group/points.h"

namespace shoal::nn {

class Group {
 public:
  struct Settings {
    bool check = false;  // compare every collective before it moves a byte
    collective::LinkModel link{};  // chooses programs: equal on all members, so that all choose alike
  };
  Group(std::unique_ptr<net::Job> job, Settings settings);
  ~Group();  // close()

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }

  // Memory in `what.buffers` stays valid until done has run. Returns the sequence number.
  std::uint64_t start(Collect what, Nanoseconds patience, net::Done done);

  void send(net::Rank to, std::uint32_t tag, std::span<const std::byte> bytes, Nanoseconds patience, net::Done done);
  void receive(std::optional<net::Rank> from, std::uint32_t tag, std::span<std::byte> into, Nanoseconds patience,
               Points::Received done);
  // Rank 0 waits for everybody, then lets everybody go. Its Error{timeout} names all that are missing, or only the
  // first (all_missing false).
  void monitored_barrier(Nanoseconds patience, bool all_missing, net::Done done);

  // Blocks until ready() or the deadline, running small operations itself; ready() becomes true on the loop.
  bool wait(const std::function<bool()>& ready, Nanoseconds patience);
  std::string waiting() const;  // what open operations wait for, in one line
  bool post(std::function<void()> fn);  // on the loop; false after close()

  std::shared_ptr<std::byte> lendable(std::size_t bytes) const;    // Transport::lendable()
  std::pair<std::uint64_t, std::uint64_t> sent() const;            // to all members so far: bytes, and those that were lent

  // Ends every operation here and on all other members with `why`.
  void abort(const Error& why);
  // Ends what is open and leaves, so that no peer sees a loss.
  void close();

 private:
  class Loop;  // all that lives on the transport's loop
  std::shared_ptr<net::Job> job() const;  // throws Error{cancelled} after close()

  const pid_t owner_;                 // the process that joined
  const std::uint32_t rank_, size_;
  std::atomic<std::uint64_t> sequence_{0};
  mutable std::mutex mutex_;          // guards job_
  std::shared_ptr<net::Job> job_;     // the last of us and the waiting threads lets it go
  const std::shared_ptr<Loop> loop_;
};

}  // namespace shoal::nn

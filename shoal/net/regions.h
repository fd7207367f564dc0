// Device-like memory: a member registers regions, and the others put bytes into them and get bytes from them without a receive;
// a signal that follows completes what was put. After Xue et al., "Fast Distributed Deep Learning over RDMA" (EuroSys'19), with
// sequence numbers in place of its flag bytes: nothing has to be cleared, and no order inside a transfer is assumed. Over
// any Transport: between members of one host the bytes go through shared memory, from there straight into the region.
//
// Order. What one member puts and signals at one other takes effect there in the order of the calls. A region that is not
// there yet holds back whoever reaches for it, and all that it calls later for that member.
//
// Threads: the transport's loop, but for signalled(). Lifetime: every member makes one Regions on the same channel of its
// transport, which outlives it; destroy it on the loop. Registered memory outlives it, and only its owner says when that may
// be read or written: after the signal that it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "shoal/net/transport.h"

namespace shoal::net {

class Regions {
 public:
  Regions(Transport& transport, std::uint16_t channel);
  ~Regions();  // what is under way ends with Error{cancelled}
  Regions(const Regions&) = delete;

  struct Place {
    std::uint32_t region = 0;  // its owner's number for it
    std::uint64_t offset = 0;  // bytes
  };
  // Once for each number. Throws Error{invalid_argument}.
  void add(std::uint32_t region, std::span<std::byte> memory);
  // To another member. done: `bytes` are free again. A place outside of the region ends the job, with a line that names both.
  void put(Rank to, Place at, Priority priority, std::span<const std::byte> bytes, Done done);
  // done: `into` is full.
  void get(Rank from, Place at, Priority priority, std::span<std::byte> into, Done done);
  // signalled(own rank) becomes `sequence` at `to`, once everything that was put there before is in place. done: it has left; what has not when this is
  // destroyed never will.
  void signal(Rank to, std::uint64_t sequence, Done done = [](const Failure&) {});

  // The newest sequence number of that member; 0 before the first. Any thread: drive() the transport until it is reached.
  std::uint64_t signalled(Rank from) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shoal::net

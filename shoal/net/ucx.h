// One-sided puts by UCX (https://openucx.org), whatever it finds between two members: a network card that writes into their memory, shared memory, TCP. The
// library is looked for when somebody asks for it, and needed nowhere else.
//
// UCX promises no order between puts nor inside of one. What was put is in place at the peer when a flush() behind it has ended. Where no hardware
// writes, the peer's process does: a thread of each Ucx makes progress, asleep in the kernel while there is nothing to do.
// UCX's own connections prove no secret: for networks on which everybody is trusted.
// UCX up to 1.13 ends this process by itself if a peer is killed, or closes, while it is being connected, or, where no hardware writes, before the puts that it
// sent here are answered: see leave().
//
// Threads: any; handlers run where `deliver` puts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::net {

class Ucx {
 public:
  using Deliver = std::function<void(std::function<void()> handler)>;
  // Throws Error{unsupported}: it is not installed, or does not start here.
  explicit Ucx(Deliver deliver);
  // What is under way is given up, and its handlers run with Error{cancelled}. Only when every member that got address() has no endpoint here or told
  // that it has joined, every endpoint of this one has, and a flush() is behind every put; else leave() first.
  ~Ucx();
  // As the destructor, with `why`, but its sockets stay open until the process ends, so that no peer that is being connected, or answers a put, loses them. Once, and the last call.
  void leave(const Failure& why);
  Ucx(const Ucx&) = delete;

  using Blob = std::vector<std::byte>;  // UCX's own, to be carried to the other member
  Blob address() const;  // connect()'s
  Blob add(std::span<std::byte> memory);  // know()'s. The memory outlives this
  // Once. false: none of its transports reaches that member. joined: this side's endpoint there is connected, or has failed.
  bool connect(Rank peer, const Blob& address, Done joined);
  // Memory of that member, from `begin` on in its own address space. The number is from 0 on, of all that were told.
  std::size_t know(Rank peer, std::uint64_t begin, const Blob& key);
  void put(Rank peer, std::size_t memory, std::uint64_t offset, std::span<const std::byte> bytes,
           Done done);  // done: `bytes` are free again
  void flush(Rank peer, Done done);

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace shoal::net

// Memory that two members of one host share: each makes a segment for the other, through which it sends. A segment has no
// name: its descriptor is passed to the other's *mailbox*, a socket of this host (and of its network namespace, in which the
// kernel keeps such sockets apart) that the other has told over a connection that has proved the secret, and whoever
// passes it shows a number that was told in the same way. The kernel frees a segment with the last process that maps it,
// however that ends; forked children do not have it.
//
// Threads: the loop, except for the atomics of Shared, which the other process reads and writes meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shoal/net/arena.h"
#include "shoal/net/descriptor.h"
#include "shoal/net/sealed.h"

namespace shoal::net {

inline constexpr std::size_t kRingBytes = 256 * 1024;

// What lies in a segment. Its *maker* is the member that sends through it.
struct Shared {
  alignas(64) std::atomic<std::uint64_t> written{0};  // by the maker
  alignas(64) std::atomic<std::uint64_t> read{0};     // by the other
  alignas(64) std::atomic<std::uint32_t> asleep{0};   // the maker sleeps in the kernel: ring its bell
  std::atomic<std::uint32_t> full{0};                 // the maker waits for room in the ring
  std::atomic<std::uint32_t> withdrawn{0};            // the maker has gone, and what it lent and nobody has read may be anything
  alignas(64) std::array<std::byte, kRingBytes> ring;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

using SegmentNumber = std::array<std::byte, 16>;  // random

class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(int memory);  // nothing if it cannot be mapped, or is no segment
  Shared* operator->() const { return reinterpret_cast<Shared*>(all_.at()); }
  Shared& operator*() const { return *operator->(); }
  explicit operator bool() const { return bool{all_}; }

 private:
  SealedMapping all_;
};

// What this member makes. False where the system gives no such memory.
class OwnSegment {
 public:
  OwnSegment();
  explicit operator bool() const { return bool{shared_}; }
  Shared& operator*() const { return *shared_; }
  const SegmentNumber& number() const { return number_; }
  // Passes it on, with an eventfd that wakes this process and the descriptor of its arena, if it has one. Empty, or why not. Once.
  std::string pass(const std::string& mailbox, int bell, int arena = -1);

 private:
  Descriptor memory_;
  Mapping shared_;
  std::string why_not_;
  SegmentNumber number_{};
};

// What the other member has made.
struct OtherSegment {
  Mapping shared;
  Descriptor bell;                // of the other process
  ArenaView arena;                // likewise, where it has one
  void wake() const;              // if it is asleep
};

// Where a segment is passed to.
class Mailbox {
 public:
  Mailbox();
  const std::string& name() const { return name_; }  // empty: there is none
  // Takes the segment that was passed with this number; what else lies there is thrown away. Empty, or why not.
  std::string take(const SegmentNumber& number, OtherSegment& into) const;

 private:
  Descriptor socket_;
  std::string name_;              // without the zero byte before it
};

}  // namespace shoal::net

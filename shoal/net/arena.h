// Memory of this process that members of its host map and read in place: what a member sends from it goes to them without a copy into a
// ring (memory_connection.h). One file of memory, far larger than what is used of it: a page exists from its first write until what was
// allocated on it is freed.
//
// Threads: any. Lifetime: whoever holds what was allocated holds the arena.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "shoal/net/descriptor.h"
#include "shoal/net/sealed.h"

namespace shoal::net {

inline constexpr std::size_t kArenaBytes = std::size_t{16} << 30;

// All of an arena, readable: its own, or that of another member.
class ArenaView {
 public:
  ArenaView() = default;
  explicit ArenaView(int memory);  // nothing if it cannot be mapped, or is no arena
  explicit operator bool() const { return bool{all_}; }
  // nullptr: not in it.
  const std::byte* find(std::uint64_t offset, std::size_t bytes) const {
    return all_ && offset <= kArenaBytes && bytes <= kArenaBytes - offset ? all_.at() + offset : nullptr;
  }

 private:
  SealedMapping all_;
};

class Arena {
 public:
  Arena();  // empty where the system gives no such memory
  Arena(const Arena&) = delete;
  int descriptor() const { return memory_.get(); }  // -1: empty

  // At the beginning of a page. nullptr: there is no room, or this is a child of the process that made it, which shares its memory.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory);
  // Where bytes lie that are in it.
  std::optional<std::uint64_t> offset_of(std::span<const std::byte> bytes) const;

 private:
  Descriptor memory_;
  SealedMapping all_;
  const pid_t maker_;
  std::mutex mutex_;                          // guards used_
  std::map<std::uint64_t, std::size_t> used_; // offset -> bytes, whole pages
};

}  // namespace shoal::net

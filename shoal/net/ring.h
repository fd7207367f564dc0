// A stream of bytes through memory that a writer and a reader share, each in its own process or both in one: one writer, one
// reader, no locks. Positions count bytes since the start; a byte's place is its position modulo the ring's size.
//
// All accesses to positions, and to the flags that say who must be woken (memory_connection.h), are in one order (sequentially
// consistent): whoever says that it sleeps and then finds no bytes will be seen asleep by whoever adds some.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace shoal::net {

inline constexpr std::size_t kRingStep = 32 * 1024;  // published, or given back, at once: the other side works on it meanwhile

class RingWriter {
 public:
  RingWriter(std::span<std::byte> ring, std::atomic<std::uint64_t>& written, const std::atomic<std::uint64_t>& read)
      : ring_(ring), written_(written), read_(read) {}

  std::uint64_t position() const { return at_; }             // behind all that was written
  bool is_read(std::uint64_t position) const { return read_.load() >= position; }

  // As many of the first of `bytes` as there is room for; returns how many.
  std::size_t write(std::span<const std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const std::uint64_t used = at_ - read_.load();
      const std::uint64_t room = used > ring_.size() ? 0 : ring_.size() - used;  // a reader that counts wrongly gets nothing
      const std::uint64_t place = at_ % ring_.size();
      const std::uint64_t size = std::min<std::uint64_t>({bytes.size() - done, room, ring_.size() - place, kRingStep});
      if (size == 0) break;
      std::memcpy(ring_.data() + place, bytes.data() + done, size);
      at_ += size;
      done += size;
      written_.store(at_);
    }
    return done;
  }

 private:
  std::span<std::byte> ring_;
  std::atomic<std::uint64_t>& written_;
  const std::atomic<std::uint64_t>& read_;
  std::uint64_t at_ = 0;
};

class RingReader {
 public:
  RingReader(std::span<const std::byte> ring, const std::atomic<std::uint64_t>& written, std::atomic<std::uint64_t>& read)
      : ring_(ring), written_(written), read_(read) {}

  // As many bytes as there are and fit; returns how many. Nothing from a writer that claims more than the ring holds.
  std::size_t read(std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
      const std::uint64_t there = written_.load() - at_;
      broken_ = there > ring_.size();
      const std::uint64_t place = at_ % ring_.size();
      const std::uint64_t size = std::min<std::uint64_t>({into.size() - done, there, ring_.size() - place, kRingStep});
      if (size == 0 || broken_) break;
      std::memcpy(into.data() + done, ring_.data() + place, size);
      at_ += size;
      done += size;
      read_.store(at_);
    }
    return done;
  }
  bool broken() const { return broken_; }

 private:
  std::span<const std::byte> ring_;
  const std::atomic<std::uint64_t>& written_;
  std::atomic<std::uint64_t>& read_;
  std::uint64_t at_ = 0;
  bool broken_ = false;
};

}  // namespace shoal::net

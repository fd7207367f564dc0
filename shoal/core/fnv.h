// FNV-1a, 64 bits (Fowler, Noll and Vo): tells equal from different where nobody cheats. By bytes, or eight times as fast by words of eight
// bytes, which gives other values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace shoal {

class Fnv1a {
 public:
  void add_bytes(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) mix(std::to_integer<std::uint64_t>(b));
  }
  // The last word is filled up with zeros.
  void add_words(std::span<const std::byte> bytes) {
    std::uint64_t word = 0;
    for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    if (bytes.empty()) return;
    word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    mix(word);
  }
  std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t unit) { value_ = (value_ ^ unit) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace shoal

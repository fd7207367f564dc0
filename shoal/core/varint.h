// Numbers in as many bytes as they need: seven bits in each, the lowest first, and the highest bit says that another one follows (LEB128).
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shoal {

inline constexpr std::size_t kLongestVarint = 10, kLongestVarint32 = 5;  // bytes, of any number and of one below 2^32

// to: where there is room for the number. Returns what is behind it.
inline std::byte* put_varint(std::byte* to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *to++ = static_cast<std::byte>(number | 0x80);
  *to++ = static_cast<std::byte>(number);
  return to;
}

// The next of `bytes`, which begin behind it then. Nothing where they end before it does, where it has more than `longest` bytes, or more than 64 bits.
inline std::optional<std::uint64_t> take_varint(std::span<const std::byte>& bytes, std::size_t longest = kLongestVarint) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < longest && i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    if (i + 1 == kLongestVarint && byte > 1) return std::nullopt;
    number |= (byte & 0x7f) << 7 * i;
    if (byte < 0x80) {
      bytes = bytes.subspan(i + 1);
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace shoal

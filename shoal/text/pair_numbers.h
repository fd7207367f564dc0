// Pairs of words as numbers: each different one gets the next number. There may be hundreds of millions: 16 to 24 bytes each.
// Threads: as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::text {

class PairNumbers {
 public:
  std::uint32_t number(std::uint32_t first, std::uint32_t second);  // of a new pair: size() until now. Throws Error{invalid_argument} for the 2^32nd
  std::optional<std::uint32_t> find(std::uint32_t first, std::uint32_t second) const;
  std::pair<std::uint32_t, std::uint32_t> operator[](std::uint32_t number) const {
    return {static_cast<std::uint32_t>(pairs_[number] >> 32), static_cast<std::uint32_t>(pairs_[number])};
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pairs_.size()); }

 private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
  std::size_t place_of(std::uint64_t pair) const;  // where its number is, or the empty slot where it belongs
  void grow();

  std::vector<std::uint64_t> pairs_;  // first word above second
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64, kEmpty);  // a power of two, at most half of them in use
  int shift_ = 64 - 6;  // of a hash, which leaves the number of a slot
};

}  // namespace shoal::text

// Whom a sample is compared with when distances are learnt: one near it of its own class, one near it of another (the target neighbours and impostors
// of Weinberger and Saul, JMLR 10, 2009, as far as a sample sees them: each time it looks at a few of each kind and takes the nearest). Threads: any
// that only read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::learn {

class Partners {
 public:
  static constexpr std::uint32_t kLookedAt = 128;  // of each kind; where there are no more, all

  struct Found {
    std::uint32_t alike, other;
  };
  // By row: its class, counted from 0, and its number, which says what it draws.
  Partners(std::span<const double> classes, std::span<const std::uint32_t> numbers, std::uint64_t seed);
  // The rows nearest to `row`, of those that it looks at in this epoch, in a space of which `points` has so many dimensions a row. Nothing for a
  // sample that is alone in its class, or where there is no other.
  std::optional<Found> of(std::uint32_t row, std::uint32_t epoch, std::span<const float> points, std::size_t dimensions) const;

 private:
  struct Range {
    std::uint32_t begin = 0, size = 0;
  };
  const std::span<const double> classes_;
  const std::span<const std::uint32_t> numbers_;
  const std::uint64_t seed_;
  std::vector<std::uint32_t> by_class_;  // rows
  std::vector<Range> ranges_;            // of it, by class
};

}  // namespace shoal::learn

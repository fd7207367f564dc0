#include "shoal/learn/partners.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "shoal/core/seed.h"
#include "shoal/learn/neighbours.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kPartnersSite = 0x6d70'0000;  // of random numbers (core/seed.h)

}  // namespace

Partners::Partners(std::span<const double> classes, std::span<const std::uint32_t> numbers, std::uint64_t seed)
    : classes_(classes), numbers_(numbers), seed_(seed), by_class_(classes.size()) {
  std::iota(by_class_.begin(), by_class_.end(), 0U);
  std::stable_sort(by_class_.begin(), by_class_.end(), [&](std::uint32_t a, std::uint32_t b) { return classes[a] < classes[b]; });
  if (classes.empty()) return;
  ranges_.resize(static_cast<std::size_t>(classes[by_class_.back()]) + 1);
  for (const double one : classes) ++ranges_[static_cast<std::size_t>(one)].size;
  for (std::size_t i = 1; i < ranges_.size(); ++i) ranges_[i].begin = ranges_[i - 1].begin + ranges_[i - 1].size;
}

std::optional<Partners::Found> Partners::of(std::uint32_t row, std::uint32_t epoch, std::span<const float> points, std::size_t dimensions) const {
  const Range own = ranges_[static_cast<std::size_t>(classes_[row])];
  const auto others = static_cast<std::uint32_t>(by_class_.size()) - own.size;
  if (own.size < 2 || others == 0) return {};
  const auto point = [&](std::uint32_t i) { return points.subspan(i * dimensions, dimensions); };
  const std::uint64_t step = (std::uint64_t{epoch} << 32) + numbers_[row];
  // Of `count` rows, which `at` counts, the nearest to this one.
  const auto nearest = [&](std::uint32_t count, std::uint32_t first_draw, const auto& at) {
    std::uint32_t found = row;
    float least = std::numeric_limits<float>::infinity();
    for (std::uint32_t look = 0; look < std::min(count, kLookedAt); ++look) {
      const double part = count <= kLookedAt ? 0 : uniform(seed_, step, first_draw + look, kPartnersSite);
      const std::uint32_t other = by_class_[at(count <= kLookedAt ? look : static_cast<std::uint32_t>(part * count))];
      if (other == row) continue;
      if (const float distance = squared_distance(point(row), point(other)); distance < least) {
        least = distance;
        found = other;
      }
    }
    return found;
  };
  const std::uint32_t alike = nearest(own.size, 0, [&](std::uint32_t i) { return own.begin + i; });
  const std::uint32_t other = nearest(others, kLookedAt, [&](std::uint32_t i) { return i < own.begin ? i : i + own.size; });
  if (alike == row || other == row) return {};
  return Found{alike, other};
}

}  // namespace shoal::learn

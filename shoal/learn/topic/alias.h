// Draws from n weights in constant time (Walker, Electronics Letters 10(8), 1974; laid out as Vose does, IEEE TSE 17(9), 1991), with
// integers as LightLDA has it (Yuan et al., arXiv 1412.1576): each weight is rounded to a whole number of units, 2^31 of them a bin, so that the
// probability that is drawn with is known exactly, and can be asked for.
// Keeps memory from table to table. Threads: one builds; any draw.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn::topic {

class Alias {
 public:
  // weights: at least one, none below 0, with a sum above 0.
  void build(std::span<const double> weights);

  // bits: 64 random ones.
  std::uint32_t draw(std::uint64_t bits) const {
    const auto bin = static_cast<std::uint32_t>((bits >> 32) * bins_.size() >> 32);
    return (bits & 0xFFFFFFFF) >> 1 < bins_[bin].stays ? bin : bins_[bin].other;
  }
  double probability(std::uint32_t i) const { return static_cast<double>(units_[i]) * unit_; }
  std::size_t memory() const { return bins_.capacity() * (sizeof(Bin) + sizeof(units_[0])); }  // bytes

 private:
  struct Bin {
    std::uint32_t stays;  // units that are its own
    std::uint32_t other;  // whose the others are
  };
  std::vector<Bin> bins_;
  std::vector<std::int64_t> units_;           // of each weight, of all bins; exact
  std::vector<std::int64_t> left_;            // to be laid out
  std::vector<std::uint32_t> below_, above_;  // weights with less than a bin's units left, and others
  double unit_ = 0;
};

}  // namespace shoal::learn::topic

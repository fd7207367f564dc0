// The random choices of a learner, as functions of its seed: who is held out, and in which order samples are learnt from. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

// Whether the `sample`-th of the data is held out, which a share of `share` in [0, 1) is.
bool held_out(std::uint64_t seed, std::uint64_t sample, double share);

// The numbers from 0 to count - 1 in an order of this epoch (Fisher and Yates); who has samples of its own draws for itself, by `member`.
std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed, unsigned epoch, std::uint32_t member);

// An order of this epoch, piece by piece. Samples in memory: shuffled(). Samples on disk: blocks of 16,384 consecutive ones in an order of the epoch, and the
// samples of each block in one of their own, so that a disk is read nearly in order and no more than the order of a block and of a piece is in memory.
class Order {
 public:
  Order(std::uint32_t count, std::uint64_t seed, unsigned epoch, std::uint32_t member, bool on_disk);
  // The next ones, of which so many must be left; until the next call.
  std::span<const std::uint32_t> take(std::size_t samples);

 private:
  void next_block();

  const std::uint32_t count_;
  std::uint64_t seed_;
  const unsigned epoch_;
  std::vector<std::uint32_t> blocks_;  // that are left, the next one last
  std::vector<std::uint32_t> order_;   // of all samples, or of a block
  std::size_t taken_ = 0;              // of these
  std::vector<std::uint32_t> piece_;
};

// Values of the normal distribution of mean 0 and this deviation; `number` tells apart rows, `site` who has them.
void fill_normal(std::span<float> row, double deviation, std::uint64_t seed, std::uint64_t number, std::uint32_t site);
// Of the uniform distribution on [0, high).
void fill_uniform(std::span<float> row, double high, std::uint64_t seed, std::uint64_t number, std::uint32_t site);

}  // namespace shoal::learn

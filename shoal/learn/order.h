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

// Values of the normal distribution of mean 0 and this deviation; `number` tells apart rows, `site` who has them.
void fill_normal(std::span<float> row, double deviation, std::uint64_t seed, std::uint64_t number, std::uint32_t site);
// Of the uniform distribution on [0, high).
void fill_uniform(std::span<float> row, double high, std::uint64_t seed, std::uint64_t number, std::uint32_t site);

}  // namespace shoal::learn

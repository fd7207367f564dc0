// Random numbers as a function, not a stream: the same (seed, step, sample, site) gives the same numbers on
// any member, thread and machine, in any order of calls. Philox4x32-10 (Salmon et al., SC'11, Figure 5).
#pragma once

#include <array>
#include <cstdint>

namespace shoal {

// Four independent uniform 32-bit words. `site` tells apart the places of the program that draw.
std::array<std::uint32_t, 4> random_words(std::uint64_t seed, std::uint64_t step, std::uint32_t sample, std::uint32_t site);
double uniform(std::uint64_t seed, std::uint64_t step, std::uint32_t sample, std::uint32_t site);  // [0, 1), 53 bits

}  // namespace shoal

// What probes send: numbers that no packing (core/packed_words.h) makes fewer bytes of, so that what is measured is the link.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shoal/core/seed.h"

namespace shoal::collective {

// `count` of bytes, or of doubles from 1 to 2, where there are fewer. Threads: pure.
template <class T>
void fill_with_noise(std::vector<T>& memory, std::size_t count) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 8);
  constexpr std::size_t kDrawn = 64 * 1024 / sizeof(T);  // then they repeat
  const std::size_t had = memory.size();
  for (std::size_t i = had; i < std::min(count, kDrawn); ++i) {
    const auto words = random_words(0x6e6f697365, i, 0, 0);
    if constexpr (sizeof(T) == 1) {
      memory.push_back(static_cast<T>(words[0]));
    } else {
      memory.push_back(std::bit_cast<T>((std::uint64_t{0x3ff00000 | (words[0] >> 12)} << 32) | words[1]));
    }
  }
  memory.resize(count);
  for (std::size_t i = std::max(had, kDrawn); i < count; i += kDrawn) std::copy_n(&memory[i - kDrawn], std::min(kDrawn, count - i), &memory[i]);
}

}  // namespace shoal::collective

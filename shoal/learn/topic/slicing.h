// The vocabulary in slices that take about equal time to sample: slices go round the workers (schedule/rotation.h), and a word's counts with its
// slice. All members divide alike. A value; threads: any, by const.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn::topic {

struct Slicing {
  // frequencies: tokens of each word, of all members.
  Slicing(std::span<const std::uint64_t> frequencies, std::uint32_t topics, std::uint32_t slices);

  std::uint32_t slices() const { return static_cast<std::uint32_t>(begins.size() - 1); }
  std::uint32_t size(std::uint32_t slice) const { return begins[slice + 1] - begins[slice]; }
  std::uint32_t word(std::uint32_t slice, std::uint32_t place) const { return words[begins[slice] + place]; }

  std::vector<std::uint32_t> words;   // slice after slice, frequent ones first
  std::vector<std::uint32_t> begins;  // slice s has words[begins[s]] to words[begins[s + 1] - 1]
  std::vector<std::uint32_t> ordinal; // of a word, in `words`
};

}  // namespace shoal::learn::topic

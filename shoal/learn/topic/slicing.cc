#include "shoal/learn/topic/slicing.h"

#include <algorithm>
#include <numeric>

#include "shoal/schedule/balance.h"

namespace shoal::learn::topic {

Slicing::Slicing(std::span<const std::uint64_t> frequencies, std::uint32_t topics, std::uint32_t slices)
    : begins(slices + 1), ordinal(frequencies.size()) {
  // A token takes its time, and so does a row that is laid out and taken up again, which is at most as long as the word is frequent.
  constexpr double row = 0.05;  // of a token's time, for each topic of it
  std::vector<double> costs(frequencies.size());
  for (std::size_t word = 0; word < costs.size(); ++word) {
    const auto tokens = static_cast<double>(frequencies[word]);
    costs[word] = tokens + row * std::min<double>(tokens, topics);
  }
  const std::vector<std::uint32_t> slice_of = schedule::balance(costs, slices);
  words.resize(frequencies.size());
  std::iota(words.begin(), words.end(), 0);
  std::stable_sort(words.begin(), words.end(), [&](std::uint32_t a, std::uint32_t b) {
    return slice_of[a] != slice_of[b] ? slice_of[a] < slice_of[b] : frequencies[a] > frequencies[b];
  });
  for (const std::uint32_t slice : slice_of) ++begins[slice + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  for (std::uint32_t i = 0; i < words.size(); ++i) ordinal[words[i]] = i;
}

}  // namespace shoal::learn::topic

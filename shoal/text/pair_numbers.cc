#include "shoal/text/pair_numbers.h"

#include "shoal/core/error.h"

namespace shoal::text {
namespace {

// A product's upper bits depend on all bits of its factors (Knuth, The Art of Computer Programming 3, 6.4); words that follow each other in a
// vocabulary, in both halves, need a second turn.
std::uint64_t mixed(std::uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15u;
  return (pair ^ pair >> 32) * 0x9E3779B97F4A7C15u;
}

std::uint64_t joined(std::uint32_t first, std::uint32_t second) { return std::uint64_t{first} << 32 | second; }

}  // namespace

std::size_t PairNumbers::place_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = mixed(pair) >> shift_;; at = (at + 1) & mask) {
    if (slots_[at] == kEmpty || pairs_[slots_[at]] == pair) return at;
  }
}

std::uint32_t PairNumbers::number(std::uint32_t first, std::uint32_t second) {
  const std::uint64_t pair = joined(first, second);
  std::size_t at = place_of(pair);
  if (slots_[at] != kEmpty) return slots_[at];
  if (size() == kEmpty) throw Error(Code::invalid_argument, "more than 4294967295 different pairs of words");
  if (2 * (pairs_.size() + 1) > slots_.size()) {
    grow();
    at = place_of(pair);
  }
  slots_[at] = size();
  pairs_.push_back(pair);
  return slots_[at];
}

std::optional<std::uint32_t> PairNumbers::find(std::uint32_t first, std::uint32_t second) const {
  const std::uint32_t number = slots_[place_of(joined(first, second))];
  return number == kEmpty ? std::nullopt : std::optional(number);
}

void PairNumbers::grow() {
  slots_.assign(2 * slots_.size(), kEmpty);
  --shift_;
  for (std::uint32_t number = 0; number < size(); ++number) slots_[place_of(pairs_[number])] = number;
}

}  // namespace shoal::text

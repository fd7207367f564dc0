#include "shoal/learn/minibatch.h"

#include "shoal/learn/order.h"

namespace shoal::learn {

std::vector<std::vector<std::uint32_t>> deal(const LabelledRows& rows, std::size_t batch, std::uint64_t seed, unsigned epoch) {
  const auto order = shuffled(rows.count, seed, epoch, 0);
  std::vector<std::uint32_t> place(rows.count);
  for (std::uint32_t at = 0; at < rows.count; ++at) place[order[at]] = at;
  std::vector<std::vector<std::uint32_t>> dealt(minibatches(rows.count, batch));
  for (std::uint32_t own = 0; own < rows.numbers.size(); ++own) dealt[place[rows.numbers[own]] / batch].push_back(own);
  return dealt;
}

void TouchedColumns::collect(const data::SparseRows& rows, std::span<const std::uint32_t> numbers) {
  constexpr std::uint32_t nowhere = ~std::uint32_t{0};
  keys_.clear();
  for (const std::uint32_t number : numbers) {
    for (const std::uint32_t column : rows[number].columns) place_[column] = nowhere;
  }
  for (const std::uint32_t number : numbers) {
    for (const std::uint32_t column : rows[number].columns) {
      if (place_[column] != nowhere) continue;
      place_[column] = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(column);
    }
  }
  keys_.push_back(columns_);
}

}  // namespace shoal::learn

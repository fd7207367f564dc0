#include "shoal/learn/minibatch.h"

#include <algorithm>

#include "shoal/learn/order.h"

namespace shoal::learn {

std::vector<std::vector<std::uint32_t>> deal(const LabelledRows& rows, std::size_t batch, std::uint64_t seed, unsigned epoch) {
  Order drawn(rows.count, seed, epoch, 0, rows.own.on_disk());
  const std::span<const std::uint32_t> order = drawn.take(rows.count);
  std::vector<std::uint32_t> place(rows.count);
  for (std::uint32_t at = 0; at < rows.count; ++at) place[order[at]] = at;
  std::vector<std::vector<std::uint32_t>> dealt(minibatches(rows.count, batch));
  for (std::uint32_t own = 0; own < rows.numbers.size(); ++own) dealt[place[rows.numbers[own]] / batch].push_back(own);
  return dealt;
}

exchange::MatrixLoad load_of(const LabelledRows& rows, const std::vector<std::vector<std::uint32_t>>& dealt) {
  const std::size_t looks = std::min<std::size_t>(8, dealt.size());
  TouchedColumns touched(rows.columns);
  exchange::MatrixLoad load;
  for (std::size_t look = 0; look < looks; ++look) {
    const auto& numbers = dealt[look * dealt.size() / looks];
    touched.collect(rows.own, numbers);
    load.vectors += static_cast<double>(numbers.size()) / static_cast<double>(looks);
    load.touched += static_cast<double>(touched.keys().size()) / static_cast<double>(looks);
    for (const std::uint32_t number : numbers) load.entries += static_cast<double>(rows.own[number].columns.size() + 1) / static_cast<double>(looks);
  }
  return load;
}

void TouchedColumns::collect(const data::SparseSlice& rows, std::span<const std::uint32_t> numbers) {
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

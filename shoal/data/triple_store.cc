#include "shoal/data/triple_store.h"

#include <span>

#include "shoal/data/spilled_numbers.h"

namespace shoal::data {

TripleStore TripleStore::in(const std::filesystem::path& folder) {
  TripleStore store;
  for (auto* const numbers : {&store.rows_, &store.columns_, &store.values_}) *numbers = std::make_shared<SpilledNumbers>(folder, "ratings");
  return store;
}

void TripleStore::append(std::uint32_t row, std::uint32_t column, float value) {
  ++size_;
  if (!on_disk()) return kept_.append(row, column, value);
  rows_->append(std::as_bytes(std::span(&row, 1)));
  columns_->append(std::as_bytes(std::span(&column, 1)));
  values_->append(std::as_bytes(std::span(&value, 1)));
}

void TripleStore::finish() {
  if (!on_disk()) return;
  for (const auto& numbers : {rows_, columns_, values_}) numbers->map();
}

TripleSlice TripleStore::all() const {
  if (!on_disk()) return kept_.slice(0, size_);
  return {rows_->numbers<std::uint32_t>(), columns_->numbers<std::uint32_t>(), values_->numbers<float>()};
}

}  // namespace shoal::data

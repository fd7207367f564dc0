#include "shoal/data/row_store.h"

#include <span>

#include "shoal/data/spilled_numbers.h"

namespace shoal::data {
RowStore RowStore::in(const std::filesystem::path& folder) {
  RowStore store;
  store.columns_ = std::make_shared<SpilledNumbers>(folder, "rows");
  store.values_ = std::make_shared<SpilledNumbers>(folder, "rows");
  return store;
}

void RowStore::append(const SparseRow& row) {
  labels.push_back(row.label);
  offsets_.push_back(offsets_.back() + row.columns.size());
  if (on_disk()) {
    columns_->append(std::as_bytes(row.columns));
    values_->append(std::as_bytes(row.values));
    return;
  }
  kept_columns_.insert(kept_columns_.end(), row.columns.begin(), row.columns.end());
  kept_values_.insert(kept_values_.end(), row.values.begin(), row.values.end());
}

void RowStore::finish() {
  if (!on_disk()) return;
  columns_->map();
  values_->map();
}

SparseSlice RowStore::all() const {
  if (on_disk()) return {offsets_, columns_->numbers<std::uint32_t>(), values_->numbers<float>(), labels};
  return {offsets_, kept_columns_, kept_values_, labels};
}

}  // namespace shoal::data

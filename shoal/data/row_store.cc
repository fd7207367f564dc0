#include "shoal/data/row_store.h"

namespace shoal::data {

RowStore RowStore::in(const std::filesystem::path& folder) {
  RowStore store;
  store.columns_ = {folder, "rows"};
  store.values_ = {folder, "rows"};
  return store;
}

void RowStore::append(const SparseRow& row) {
  labels.push_back(row.label);
  offsets_.push_back(offsets_.back() + row.columns.size());
  columns_.append(row.columns);
  values_.append(row.values);
}

void RowStore::finish() {
  columns_.finish();
  values_.finish();
}

}  // namespace shoal::data

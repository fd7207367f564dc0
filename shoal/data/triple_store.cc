#include "shoal/data/triple_store.h"

#include <span>

namespace shoal::data {

TripleStore TripleStore::in(const std::filesystem::path& folder) {
  TripleStore store;
  store.rows_ = {folder, "ratings"};
  store.columns_ = {folder, "ratings"};
  store.values_ = {folder, "ratings"};
  return store;
}

void TripleStore::append(std::uint32_t row, std::uint32_t column, float value) {
  rows_.append(std::span(&row, 1));
  columns_.append(std::span(&column, 1));
  values_.append(std::span(&value, 1));
}

void TripleStore::finish() {
  rows_.finish();
  columns_.finish();
  values_.finish();
}

}  // namespace shoal::data

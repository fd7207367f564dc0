#include "shoal/table/changes.h"

#include <cmath>

namespace shoal::table {

Columns::Columns(std::size_t width)
    : width_(width), shift_(static_cast<unsigned>(std::countr_zero(std::bit_ceil((width + 63) / 64)))),
      last_(static_cast<unsigned>((width - 1) >> shift_)), spread_() {
  constexpr double golden = 0.6180339887498949;   // its multiples are spread evenly, and lie on no grid
  for (std::size_t i = 0; i < spread_.size(); ++i) {
    const double at = golden * static_cast<double>(i);
    spread_[i] = static_cast<std::size_t>((at - std::floor(at)) * static_cast<double>(width));
  }
}

std::string fault_of(const Message& changes, const Columns& columns, std::size_t bytes_a_value) {
  std::size_t expected = changes.header.count * (sizeof(Key) + sizeof(Blocks));
  for (const Blocks blocks : blocks_of(changes)) {
    if (!columns.has(blocks)) return "changes of columns that no row has";
    expected += columns.count(blocks) * bytes_a_value;
  }
  if (changes.header.length == expected) return "";
  return std::to_string(changes.header.length) + " bytes for changes of " + std::to_string(changes.header.count) + " rows, which are " + std::to_string(expected);
}

}  // namespace shoal::table

#include "shoal/learn/topic/document_order.h"

#include <numeric>

namespace shoal::learn::topic {

DocumentOrder::DocumentOrder(const Block& block)
    : of_line_(block.tables.size() / kLine), begins_(block.documents() + std::size_t{1}), tokens_(block.tokens()) {
  for (std::uint32_t d = 0; d < block.documents(); ++d) of_line_[block.first_line[d]] = d;
  for (std::uint32_t token = 0; token < block.tokens(); ++token) {
    ++begins_[of_line_[block.lines[token]] + std::size_t{1}];
    tokens_[block.positions[token]] = token;
  }
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
}

}  // namespace shoal::learn::topic

// A block's tokens document by document, for samplers that need them so: the block has them word by word (block.h).
// 4 bytes a token, and 4 a line of its tables. A value; threads: any, by const.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/block.h"

namespace shoal::learn::topic {

class DocumentOrder {
 public:
  explicit DocumentOrder(const Block& block);

  std::uint32_t document_of(std::uint32_t line) const { return of_line_[line]; }  // line: the first of its table
  std::uint32_t begin(std::uint32_t document) const { return begins_[document]; }  // Block::positions of its first token
  std::span<const std::uint32_t> tokens_of(std::uint32_t document) const {
    return std::span(tokens_).subspan(begins_[document], begins_[document + 1] - begins_[document]);
  }
  std::size_t memory() const { return (of_line_.size() + begins_.size() + tokens_.size()) * sizeof(std::uint32_t); }  // bytes

 private:
  std::vector<std::uint32_t> of_line_, begins_, tokens_;
};

}  // namespace shoal::learn::topic

#include "shoal/learn/topic/by_topic.h"

#include <algorithm>
#include <bit>

namespace shoal::learn::topic {
namespace {

// Nanoseconds of processor time, see the header.
constexpr double kOfEntries = 10, kOfSummed = 1.5, kOfDrawn = 50;
constexpr double kLaying = 32;               // a table is laid out and taken up again, in sums
constexpr std::uint32_t kFewestTopics = 256;  // with fewer there is nothing to gain

std::size_t sums_of(std::uint32_t topics) { return (topics + ByTopic::kGroup - 1) / ByTopic::kGroup + kLine; }

}  // namespace

ByTopic::ByTopic(std::uint32_t topics, LayOut lay_out)
    : topics_(topics), when_(lay_out), sums_(sums_of(topics)) {}

bool ByTopic::pays(const Block& block, const Document& document) const {
  if (when_ == LayOut::always) return true;
  const double has = block.tables[std::size_t{document.line} * kLine] >> block.shift;
  const double from_entries = document.tokens * (has / kLine) * kOfEntries;
  return (document.words + kLaying) * (topics_ / double{kLine}) * kOfSummed + document.tokens * kOfDrawn < from_entries;
}

void ByTopic::lay_out(Block& block, std::uint32_t slice) {
  first_ = UINT32_MAX;
  documents_.clear();
  if (block.first_whole == UINT32_MAX || (topics_ < kFewestTopics && when_ != LayOut::always)) return;
  document_.assign(block.tables.size() / kLine - block.first_whole, kHasEntries);
  for (const std::uint32_t line : block.first_line) {
    if (line < block.first_whole) continue;
    document_[line - block.first_whole] = static_cast<std::uint32_t>(documents_.size());
    documents_.push_back({.line = line});
  }
  const auto runs = block.runs_of(slice);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    std::uint32_t before = UINT32_MAX;
    for (std::uint32_t token = runs[i + 1].begin; token-- > runs[i].begin && block.lines[token] >= block.first_whole;) {
      Document& document = documents_[document_[block.lines[token] - block.first_whole]];
      ++document.tokens;
      document.words += block.lines[token] != before;
      before = block.lines[token];
    }
  }
  const auto goes = [&](const Document& document) {
    if (document.tokens != 0 && pays(block, document)) return false;
    document_[document.line - block.first_whole] = kHasEntries;
    return true;
  };
  std::erase_if(documents_, goes);
  if (documents_.empty()) return;
  first_ = block.first_whole;
  counts_.assign(topics_, 0);
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    const std::uint32_t line = documents_[i].line;
    document_[line - first_] = static_cast<std::uint32_t>(i);  // those before it may have gone
    std::uint32_t* const table = block.tables.data() + std::size_t{line} * kLine;
    const std::uint32_t entries = table[0] >> block.shift;
    for (std::uint32_t i = 1; i <= entries; ++i) counts_[table[i] >> block.shift] += table[i] & block.most();
    std::fill_n(table, entries + 1, 0);
    std::ranges::copy(counts_, table);
    std::ranges::fill(counts_, 0);
  }
}

void ByTopic::take_up(Block& block) {
  for (const Document& document : documents_) {
    std::uint32_t* const table = block.tables.data() + std::size_t{document.line} * kLine;
    std::copy_n(table, topics_, counts_.data());
    std::fill_n(table, topics_, 0);
    std::uint32_t entries = 0;
    for (Topic topic = 0; topic < topics_; ++topic) {
      for (std::uint32_t left = counts_[topic]; left != 0;) {
        const std::uint32_t here = std::min(left, block.most());
        table[++entries] = topic << block.shift | here;
        left -= here;
      }
    }
    table[0] = entries << block.shift;
  }
  documents_.clear();
  first_ = UINT32_MAX;
}

std::size_t ByTopic::memory() const {
  return document_.capacity() * sizeof(document_[0]) + documents_.capacity() * sizeof(Document) +
         counts_.capacity() * sizeof(counts_[0]) + sums_.size() * sizeof(float);
}

std::size_t ByTopic::memory_of(std::uint64_t lines, std::uint64_t documents, std::uint32_t topics) {
  const std::size_t sums = sums_of(topics) * sizeof(float);
  if (documents == 0 || topics < kFewestTopics) return sums;
  return sums + (lines + topics) * sizeof(std::uint32_t) + std::bit_ceil(documents) * sizeof(Document);  // which grow by doubling
}

}  // namespace shoal::learn::topic

// Counts as samplers that take one token after the other use them: a word's row laid out by topic, and a document's table.
// Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/block.h"
#include "shoal/learn/topic/model.h"
#include "shoal/learn/topic/slice.h"

namespace shoal::learn::topic {

// C_wk of one word at a time. 5 bytes a topic; laying out and taking up cost as much as the row is long.
class WordCounts {
 public:
  explicit WordCounts(std::uint32_t topics) : counts_(topics), listed_(topics) {}

  void lay_out(std::span<const TopicCount> row) {
    for (const auto& [topic, count] : row) {
      list(topic);
      counts_[topic] = count;
    }
  }
  std::uint32_t operator[](Topic topic) const { return counts_[topic]; }
  void remove(Topic topic) { --counts_[topic]; }
  void add(Topic topic) {
    list(topic);
    ++counts_[topic];
  }
  // The topics whose counts are not 0, or were not since the row was laid out.
  std::span<const Topic> listed() const { return list_; }
  // The row as it is now becomes the slice's, and here there is none.
  void take_up(Slice& slice, std::uint32_t place) {
    row_.clear();
    for (const Topic topic : list_) {
      if (counts_[topic] != 0) row_.push_back({topic, counts_[topic]});
      counts_[topic] = 0;
      listed_[topic] = 0;
    }
    list_.clear();
    slice.store(place, row_);
  }
  std::size_t memory() const { return counts_.size() * (sizeof(std::uint32_t) + 1); }  // bytes

 private:
  void list(Topic topic) {
    if (listed_[topic]) return;
    listed_[topic] = 1;
    list_.push_back(topic);
  }

  std::vector<std::uint32_t> counts_;
  std::vector<std::uint8_t> listed_;
  std::vector<Topic> list_;
  std::vector<TopicCount> row_;
};

// C_dk of the document whose table begins at `line` of the block (block.h), which outlives it.
class DocumentCounts {
 public:
  DocumentCounts(const Block& block, std::uint32_t line)
      : table_(block.tables.data() + std::size_t{line} * kLine), shift_(block.shift), long_(line >= block.first_long) {}

  std::uint32_t entries() const { return table_[0] >> shift_; }
  // The i-th of them, i < entries(). Their order changes with remove(); a long document may have several of one topic.
  TopicCount operator[](std::uint32_t i) const { return {table_[1 + i] >> shift_, table_[1 + i] & mask()}; }
  std::uint32_t of(Topic topic) const {
    const std::uint32_t lines = (entries() + kLine) / kLine, mask = this->mask();
    std::uint32_t count = 0;
    // Whole lines: nothing is decided within one, and a compiler makes vectors of it.
    for (std::uint32_t line = 0; line < lines && (count == 0 || long_); ++line) {
      for (std::uint32_t i = 0; i < kLine; ++i) {
        const std::uint32_t entry = table_[line * kLine + i];
        count += entry >> shift_ == topic ? entry & mask : 0;
      }
    }
    return count;
  }
  // The document must have a token of that topic.
  void remove(Topic topic) {
    const std::uint32_t at = find(topic);
    if ((--table_[at] & mask()) != 0) return;
    const std::uint32_t last = entries();  // its entry takes the place of the one that is empty
    table_[at] = table_[last];
    table_[last] = 0;
    table_[0] = (last - 1) << shift_;
  }
  // The document must have fewer tokens counted than it has.
  void add(Topic topic) {
    const std::uint32_t used = entries();
    std::uint32_t at = find(topic);
    if (at > used || (table_[at] & mask()) == mask()) {
      at = used + 1;
      table_[at] = topic << shift_;
      table_[0] = at << shift_;
    }
    ++table_[at];
  }

 private:
  std::uint32_t mask() const { return (1u << shift_) - 1; }
  // An entry of that topic, a full one only if all are; one behind the last where there is none.
  std::uint32_t find(Topic topic) const {
    const std::uint32_t used = entries();
    std::uint32_t at = 1;
    while (at <= used && table_[at] >> shift_ != topic) ++at;
    if (!long_ || at > used) return at;
    std::uint32_t open = at;
    while (open <= used && (table_[open] >> shift_ != topic || (table_[open] & mask()) == mask())) ++open;
    return open <= used ? open : at;
  }

  std::uint32_t* const table_;
  const unsigned shift_;
  const bool long_;
};

}  // namespace shoal::learn::topic

// Tables of long documents laid out by topic while a worker has a slice: a count for each topic, in the order of topics, in the place of the entries
// of those that the document has (block.h). From entries each token's draw looks up psi of all topics of its document, one by one; by topic, counts
// and psi are multiplied as they lie, once for all tokens that the document has of a word: sums over groups of topics are kept up to date while
// these move, and a draw looks at the sums and into one group (by_topic_run-inl.h). With n tokens of g words in the document and the slice, K topics
// in all and C of them in the document, a document is laid out where that is foreseen to take less time, in nanoseconds as measured:
//
//   from entries  n (C / 16) kOfEntries                           docs/topics-measured.md, "Long documents"
//   by topic      (g + kLaying) (K / 16) kOfSummed + n kOfDrawn
//
// Both draw from the very distribution, so it is still drawn from although that depends on the topics themselves; and it depends on the block alone,
// so the model is still a function of seed, corpus, members, threads and blocks. Between two visits all tables have entries. It takes a table that
// has room for all topics, as those of documents have that have as many tokens. Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/learn/topic/aligned.h"
#include "shoal/learn/topic/block.h"
#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

enum class LayOut : std::uint8_t { where_cheaper, always };  // always: wherever there is room, for tests

class ByTopic {
 public:
  static constexpr std::uint32_t kGroup = kLine * kLine;  // topics that are summed as one

  ByTopic(std::uint32_t topics, LayOut lay_out);

  void lay_out(Block& block, std::uint32_t slice);  // tables of documents that have tokens of the slice
  void take_up(Block& block);                      // they have entries again, topics ascending
  // Whether the table that begins at that line of the block is laid out.
  bool has(std::uint32_t line) const { return line >= first_ && document_[line - first_] != kHasEntries; }
  float* sums() const { return sums_.data(); }  // a number for each group, and zeros behind, up to a whole line
  std::size_t memory() const;  // bytes
  // Of one that tables of so many documents are laid out by in a visit, which take so many lines: the most, in bytes.
  static std::size_t memory_of(std::uint64_t lines, std::uint64_t documents, std::uint32_t topics);

 private:
  static constexpr std::uint32_t kHasEntries = UINT32_MAX;
  struct Document {
    std::uint32_t line = 0, tokens = 0, words = 0;  // tokens of the slice, and words that they are of
  };
  bool pays(const Block& block, const Document& document) const;

  const std::uint32_t topics_;
  const LayOut when_;
  std::uint32_t first_ = UINT32_MAX;  // line of the block from which on tables may be laid out
  // By line from there on: of the table that begins there and is laid out, its document's number in documents_.
  std::vector<std::uint32_t> document_;
  std::vector<Document> documents_;
  std::vector<std::uint32_t> counts_;  // of one document by topic, on the way
  Aligned<float> sums_;
};

}  // namespace shoal::learn::topic

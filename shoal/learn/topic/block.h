// A worker's documents as the samplers go through them: tokens by slice, word and document, short documents first, so that a word's row is laid out
// once for all of its tokens, and how many tokens of each document have each topic (C_dk).
//
// A document's counts are a table of 32-bit entries, topic << shift | count, in lines of 16 from the boundary of a cache line on. The first entry
// says how many follow (in the place of a topic; its count is 0, so that it weighs nothing); they are in no order, without holes. There is room for
// as many as the document can have topics: min(tokens, topics). In a long document, of more tokens than an entry can count, a topic may have several
// entries, of which all but one are full: whatever is a sum over entries is the same. Long documents' tables are the last. Values; threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/aligned.h"
#include "shoal/learn/topic/model.h"
#include "shoal/learn/topic/slice.h"
#include "shoal/learn/topic/slicing.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

inline constexpr std::uint32_t kLine = 16;  // entries

struct Block {
  struct Run {             // of tokens of one word
    std::uint32_t place;   // of the word in its slice
    std::uint32_t begin;   // of its tokens; they end where the next run's begin
  };

  Block() = default;  // of no documents
  // Documents `begin` to `end` - 1. Topics of tokens are 0 and nothing is counted yet: assign() each, then count(). Throws Error{invalid_argument}
  // for 2^31 tokens and more.
  Block(const text::Documents& documents, std::size_t begin, std::size_t end, const Slicing& slicing, std::uint32_t topics);

  // How documents' tables are laid out: bits of a count, for the longest of them; and lines of one.
  static unsigned shift_for(std::uint64_t longest, std::uint32_t topics);
  static std::uint64_t lines_for(std::uint64_t tokens, std::uint32_t topics, unsigned shift);
  static bool is_whole(std::uint64_t lines, std::uint32_t topics) { return lines * kLine >= topics; }  // room for a count of each topic (by_topic.h)

  std::uint32_t documents() const { return static_cast<std::uint32_t>(first_line.size()); }
  std::uint32_t tokens() const { return static_cast<std::uint32_t>(topics.size()); }
  // The slice's runs, and one behind them that says where their tokens end.
  std::span<const Run> runs_of(std::uint32_t slice) const { return std::span(runs).subspan(slices[slice], slices[slice + 1] - slices[slice] + 1); }
  std::uint32_t most() const { return (std::uint32_t{1} << shift) - 1; }  // tokens that an entry can count
  void count();            // C_dk, from `topics`
  // Adds what the block has of a slice (C_wk) to rows whose topics ascend, and stay so.
  void add_to(Slice& slice, std::uint32_t number) const;
  std::size_t memory() const;  // bytes
  // Of one document, each topic once; in the order of its table, or if it is long, topics ascending.
  void counts_of(std::uint32_t document, std::vector<TopicCount>& to) const;

  unsigned shift = 0;
  std::vector<Run> runs;                   // by slice and word; the last is behind all
  std::vector<std::uint32_t> slices;       // first run of each slice
  std::vector<std::uint32_t> lines;        // of a token: the first of its document's table
  std::vector<Topic> topics;               // of a token
  std::vector<std::uint32_t> positions;    // of a token: where its document has it, among the block's tokens in the order of documents
  std::vector<std::uint32_t> first_line;   // of a document's table
  std::uint32_t longest_table = 0;         // lines
  std::uint32_t first_long = UINT32_MAX;   // line from which on tables are of long documents
  std::uint32_t first_whole = UINT32_MAX;  // line from which on tables are whole
  Aligned<std::uint32_t> tables;
};

}  // namespace shoal::learn::topic

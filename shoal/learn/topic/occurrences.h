// In how many windows of texts words come, and pairs of words that are top words of one topic come together: what coherence is computed from.
// A window is `window` tokens side by side and moves on by one; a document no longer than that is one window, and with window 0 each document is.
// A word that a window has twice counts as gone when the first of the two leaves it: gensim, whose figures people compare with, counts so.
// Counts of members and threads add up. Memory: the pairs of the topics' words, whatever the vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

class Occurrences {
 public:
  // topics: the words of each, none twice in one; numbers below `vocabulary`.
  Occurrences(std::span<const std::vector<std::uint32_t>> topics, std::uint32_t vocabulary, unsigned window);

  // Documents begin <= d < end. Words beyond the vocabulary take their place in windows and are counted nowhere.
  void add(const text::Documents& documents, std::size_t begin, std::size_t end);
  Occurrences& operator+=(const Occurrences& other);  // of the same topics and window

  std::uint64_t windows() const { return windows_; }
  std::uint64_t of(std::uint32_t word) const { return singles_[number_[word]]; }
  std::uint64_t of(std::uint32_t a, std::uint32_t b) const;  // of one topic; of(a) if they are the same

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Partner {
    std::uint32_t number;  // above that of the word whose partner it is
    std::uint64_t together;
  };
  struct Interval {
    std::uint64_t begin, end;  // windows that have the word
  };
  struct Present {
    std::uint32_t number;
    std::size_t begin, end;  // of intervals_
  };
  void add(std::span<const std::uint32_t> document);
  void find_intervals(std::size_t tokens, std::uint64_t windows);

  const std::uint64_t window_;
  std::uint64_t windows_ = 0;
  std::vector<std::uint32_t> number_;           // by word, among the topics' words; kNone of others
  std::vector<std::uint64_t> singles_;          // by that number
  std::vector<std::vector<Partner>> partners_;  // by the smaller number, ascending
  // Of one document.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> positions_;  // number, position; sorted
  std::vector<Interval> intervals_;
  std::vector<Present> present_;
  std::vector<std::uint32_t> place_;  // in present_ by number; kNone when absent
};

}  // namespace shoal::learn::topic

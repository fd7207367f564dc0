// The words that tell a reader what a topic is about. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

struct WordCount {
  std::uint32_t word, count;
};

// Of each topic its most frequent words, at most `most`, the most frequent first; of equally frequent ones that with the smaller number.
std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most);
// The same of these topics, in their order; none comes twice.
std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most, std::span<const Topic> topics);

// The same row by row, of rows in any order and from several members. Threads: one.
class TopWords {
 public:
  // Of these topics among all of them; none comes twice.
  TopWords(std::uint32_t all_topics, std::span<const Topic> topics, std::size_t most);
  void add(std::uint32_t word, std::span<const TopicCount> row);
  std::vector<std::vector<WordCount>> take();  // once

 private:
  const std::size_t most_;
  std::vector<std::uint32_t> place_;         // by topic, in `top_`
  std::vector<std::vector<WordCount>> top_;  // heaps with the last of the best at the front
};

// A few topics, for who watches a model grow: others at each look.
std::vector<Topic> watched(std::uint32_t all_topics, std::size_t look);
inline constexpr std::size_t kWatchedWords = 8;  // of each
std::vector<std::vector<std::uint32_t>> some_words(const Model& model, std::size_t look);

}  // namespace shoal::learn::topic

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

// The words of a few topics, for who watches a model grow: other topics at each look.
std::vector<std::vector<std::uint32_t>> some_words(const Model& model, std::size_t look);

}  // namespace shoal::learn::topic

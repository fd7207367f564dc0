// The words that tell a reader what a topic is about. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

struct WordCount {
  std::uint32_t word, count;
};

// Of each topic its most frequent words, at most `most`, the most frequent first; of equally frequent ones that with the smaller number.
std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most);

}  // namespace shoal::learn::topic

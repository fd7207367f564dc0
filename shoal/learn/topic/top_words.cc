#include "shoal/learn/topic/top_words.h"

#include <algorithm>
#include <numeric>

namespace shoal::learn::topic {

std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most) {
  std::vector<Topic> all(model.topics());
  std::iota(all.begin(), all.end(), 0u);
  return top_words(model, most, all);
}

std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most, std::span<const Topic> topics) {
  constexpr std::uint32_t none = 0xFFFFFFFF;
  std::vector<std::uint32_t> place(model.topics(), none);
  for (std::uint32_t i = 0; i < topics.size(); ++i) place[topics[i]] = i;
  const auto before = [](const WordCount& a, const WordCount& b) { return a.count != b.count ? a.count > b.count : a.word < b.word; };
  std::vector<std::vector<WordCount>> top(topics.size());  // heaps with the last of the best at the front
  for (std::uint32_t w = 0; most > 0 && w < model.words(); ++w) {
    for (const auto [topic, count] : model[w]) {
      if (place[topic] == none) continue;
      std::vector<WordCount>& best = top[place[topic]];
      const WordCount here{w, count};
      if (best.size() == most) {
        if (!before(here, best.front())) continue;
        std::pop_heap(best.begin(), best.end(), before);
        best.pop_back();
      }
      best.push_back(here);
      std::push_heap(best.begin(), best.end(), before);
    }
  }
  for (auto& best : top) std::sort_heap(best.begin(), best.end(), before);
  return top;
}

}  // namespace shoal::learn::topic

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

std::vector<std::vector<std::uint32_t>> some_words(const Model& model, std::size_t look) {
  constexpr std::size_t kTopics = 3, kWords = 8;
  std::vector<std::vector<std::uint32_t>> words;
  const auto all = top_words(model, kWords);
  for (std::size_t i = 0; i < std::min(kTopics, all.size()); ++i) {
    auto& shown = words.emplace_back();
    for (const auto& [word, count] : all[(look * kTopics + i) % all.size()]) shown.push_back(word);
  }
  return words;
}

}  // namespace shoal::learn::topic

#include "shoal/learn/topic/top_words.h"

#include <algorithm>
#include <numeric>

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kNotAsked = 0xFFFFFFFF;
bool is_before(const WordCount& a, const WordCount& b) { return a.count != b.count ? a.count > b.count : a.word < b.word; }

}  // namespace

std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most) {
  std::vector<Topic> all(model.topics());
  std::iota(all.begin(), all.end(), 0u);
  return top_words(model, most, all);
}

std::vector<std::vector<WordCount>> top_words(const Model& model, std::size_t most, std::span<const Topic> topics) {
  TopWords top(model.topics(), topics, most);
  for (std::uint32_t w = 0; most > 0 && w < model.words(); ++w) top.add(w, model[w]);
  return top.take();
}

TopWords::TopWords(std::uint32_t all_topics, std::span<const Topic> topics, std::size_t most)
    : most_(most), place_(all_topics, kNotAsked), top_(topics.size()) {
  for (std::uint32_t i = 0; i < topics.size(); ++i) place_[topics[i]] = i;
}

void TopWords::add(std::uint32_t word, std::span<const TopicCount> row) {
  for (const auto [topic, count] : row) {
    if (place_[topic] == kNotAsked || most_ == 0) continue;
    std::vector<WordCount>& best = top_[place_[topic]];
    const WordCount here{word, count};
    if (best.size() == most_) {
      if (!is_before(here, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), is_before);
      best.pop_back();
    }
    best.push_back(here);
    std::push_heap(best.begin(), best.end(), is_before);
  }
}

std::vector<std::vector<WordCount>> TopWords::take() {
  for (auto& best : top_) std::sort_heap(best.begin(), best.end(), is_before);
  return std::move(top_);
}

std::vector<Topic> watched(std::uint32_t all_topics, std::size_t look) {
  constexpr std::uint32_t most = 3;
  std::vector<Topic> topics;
  for (std::uint32_t i = 0; i < std::min(most, all_topics); ++i) topics.push_back(static_cast<Topic>((look * most + i) % all_topics));
  return topics;
}

std::vector<std::vector<std::uint32_t>> some_words(const Model& model, std::size_t look) {
  std::vector<std::vector<std::uint32_t>> words;
  for (const auto& of_topic : top_words(model, kWatchedWords, watched(model.topics(), look))) {
    words.emplace_back();
    for (const auto& [word, count] : of_topic) words.back().push_back(word);
  }
  return words;
}

}  // namespace shoal::learn::topic

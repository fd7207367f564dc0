#include "shoal/learn/topic/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "shoal/core/aside.h"
#include "shoal/learn/topic/map.h"
#include "shoal/learn/topic/top_words.h"
#include "shoal/learn/topic/topics_page.h"

namespace shoal::learn::topic {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kExamples = 3, kFewest = 8, kExampleWords = 60;
constexpr std::size_t kWordsShown = 30;    // for one lambda
constexpr std::size_t kTopicsOfWord = 12;  // that the page knows of

std::vector<std::uint64_t> frequencies_of(const Model& model) {
  std::vector<std::uint64_t> frequencies(model.words());
  for (std::uint32_t w = 0; w < model.words(); ++w) {
    for (const TopicCount& pair : model[w]) frequencies[w] += pair.count;
  }
  return frequencies;
}

// Of each topic the words that are among the most relevant for lambda 0, 0.1, ... or 1, most frequent first.
class Relevant {
 public:
  // place: of each topic its number among `count`, beyond them for others, which have no words here.
  Relevant(const Model& model, const std::vector<std::uint64_t>& frequencies, std::span<const std::size_t> place, std::size_t count)
      : frequencies_(frequencies), words_(count) {
    for (std::uint32_t w = 0; w < model.words(); ++w) {
      for (const auto [topic, tokens] : model[w]) {
        if (place[topic] < count) words_[place[topic]].push_back({w, tokens});
      }
    }
  }
  std::vector<WordCount> of(std::size_t number) const {
    std::vector<WordCount> words = words_[number], chosen;
    const std::size_t shown = std::min(kWordsShown, words.size());
    for (int tenths = 0; tenths <= 10; ++tenths) {
      const auto relevance = [&](const WordCount& here) {
        return std::log(here.count) - (1 - tenths / 10.0) * std::log(static_cast<double>(frequencies_[here.word]));
      };
      std::partial_sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(shown), words.end(), [&](const WordCount& a, const WordCount& b) {
        const double of_a = relevance(a), of_b = relevance(b);
        return of_a != of_b ? of_a > of_b : a.count != b.count ? a.count > b.count : a.word < b.word;
      });
      chosen.insert(chosen.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(shown));
    }
    std::sort(chosen.begin(), chosen.end(), [](const WordCount& a, const WordCount& b) {
      return a.count != b.count ? a.count > b.count : a.word < b.word;
    });
    const auto same = [](const WordCount& a, const WordCount& b) { return a.word == b.word; };
    chosen.erase(std::unique(chosen.begin(), chosen.end(), same), chosen.end());
    return chosen;
  }

 private:
  const std::vector<std::uint64_t>& frequencies_;
  std::vector<std::vector<WordCount>> words_;  // by the topic's number
};

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json examples_json(const Examples& examples, Topic topic) {
  Json list = Json::array();
  for (const Examples::Document& document : examples.of(topic)) list.push_back({document.name, rounded(document.share), document.text});
  return list;
}

}  // namespace

std::vector<Topic> largest(std::span<const std::uint64_t> totals, std::size_t most) {
  std::vector<Topic> topics(totals.size());
  std::iota(topics.begin(), topics.end(), 0u);
  std::erase_if(topics, [&](Topic k) { return totals[k] == 0; });
  std::stable_sort(topics.begin(), topics.end(), [&](Topic a, Topic b) { return totals[a] > totals[b]; });
  topics.resize(std::min(topics.size(), most));
  return topics;
}

Examples::Examples(std::uint32_t topics, std::span<const Topic> of) : wanted_(topics, false), best_(topics) {
  for (const Topic topic : of) wanted_[topic] = true;
}

bool Examples::takes(Topic topic, double share) const {
  return wanted_[topic] && (best_[topic].size() < kExamples || share > best_[topic].back().share);
}

void Examples::offer(Topic topic, Document document) {
  if (!takes(topic, document.share)) return;
  std::vector<Document>& best = best_[topic];
  const auto before = std::find_if(best.begin(), best.end(), [&](const Document& other) { return document.share > other.share; });
  best.insert(before, std::move(document));
  if (best.size() > kExamples) best.pop_back();
}

void Examples::offer(std::string_view name, std::span<const std::uint32_t> words, const Mixture& mixture, const data::Names& vocabulary) {
  if (mixture.tokens < kFewest) return;
  std::string text;
  for (const auto [topic, share] : mixture.topics) {
    if (!takes(topic, share)) continue;
    if (text.empty()) {
      std::size_t left = kExampleWords;
      for (const std::uint32_t word : words) {
        if (word == text::kUnknownWord) continue;
        text.append(text.empty() ? "" : " ").append(vocabulary[word]);
        if (--left == 0) break;
      }
    }
    offer(topic, {std::string(name), text, share});
  }
}

std::string Examples::lines() const {
  std::string text;
  for (Topic k = 0; k < best_.size(); ++k) {
    for (const Document& document : best_[k]) {
      text += Json{k, document.name, document.text, document.share}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
  }
  return text;
}

void Examples::offer_lines(std::string_view lines) {
  for (std::size_t end; (end = lines.find('\n')) != std::string_view::npos; lines.remove_prefix(end + 1)) {
    const Json line = Json::parse(lines.substr(0, end));
    offer(line.at(0).get<Topic>(), {line.at(1), line.at(2), line.at(3)});
  }
}

std::string page_of(const Model& model, const Examples& examples, const std::string& title, const std::string& about) {
  const std::vector<Topic> topics = largest(model.totals, kMostShown);
  const std::vector<std::uint64_t> frequencies = frequencies_of(model);
  const std::vector<Point> points = scaled(divergences(model, topics), topics.size());
  std::map<std::uint32_t, std::size_t> number;  // of words on the page
  Json words = Json::array(), shown = Json::array();
  std::vector<std::size_t> place(model.topics(), kMostShown);
  for (std::size_t i = 0; i < topics.size(); ++i) place[topics[i]] = i;
  const Relevant relevant(model, frequencies, place, topics.size());
  for (std::size_t i = 0; i < topics.size(); ++i) {
    const Topic k = topics[i];
    Json own = Json::array();
    for (const auto [word, count] : relevant.of(i)) {
      const auto [at, is_new] = number.emplace(word, words.size());
      if (is_new) {
        std::vector<TopicCount> row(model[word].begin(), model[word].end());
        std::erase_if(row, [&](const TopicCount& pair) { return place[pair.topic] == kMostShown; });
        std::stable_sort(row.begin(), row.end(), [](const TopicCount& a, const TopicCount& b) { return a.count > b.count; });
        row.resize(std::min(row.size(), kTopicsOfWord));
        Json of_topics = Json::array();
        for (const auto [topic, tokens] : row) {
          of_topics.push_back(place[topic]);
          of_topics.push_back(tokens);
        }
        words.push_back({std::string(model.vocabulary[word]), frequencies[word], of_topics});
      }
      own.push_back(at->second);
      own.push_back(count);
    }
    shown.push_back({{"id", k},
                     {"tokens", model.totals[k]},
                     {"alpha", model.prior.alpha[k]},
                     {"at", {rounded(points[i][0]), rounded(points[i][1])}},
                     {"words", own},
                     {"examples", examples_json(examples, k)}});
  }
  const Json data = {{"title", title},
                     {"about", about},
                     {"topics", model.topics()},
                     {"vocabulary", model.words()},
                     {"tokens", std::accumulate(model.totals.begin(), model.totals.end(), std::uint64_t{0})},
                     {"beta", model.prior.beta},
                     {"shown", shown},
                     {"words", words}};
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Inside of <script>, "</" would end it, and "<!--" would make more of it a comment, whatever the JSON says.
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) text.replace(at, 1, "\\u003c");
  return std::string(kTopicsBefore) + text + kTopicsAfter;
}

std::string pyldavis_of(const Model& model, std::span<const Mixture> documents) {
  const std::vector<Topic> topics = largest(model.totals, kPyldavisTopics);
  const std::vector<std::uint64_t> frequencies = frequencies_of(model);
  std::vector<std::uint32_t> words(model.words());
  std::iota(words.begin(), words.end(), 0u);
  std::stable_sort(words.begin(), words.end(), [&](std::uint32_t a, std::uint32_t b) { return frequencies[a] > frequencies[b]; });
  std::erase_if(words, [&](std::uint32_t w) { return frequencies[w] == 0; });
  words.resize(std::min(words.size(), kPyldavisWords));

  std::vector<std::vector<double>> phi(topics.size(), std::vector<double>(words.size(), model.prior.beta));
  std::vector<std::size_t> place(model.topics(), kPyldavisTopics);
  for (std::size_t i = 0; i < topics.size(); ++i) place[topics[i]] = i;
  Json vocabulary = Json::array(), frequency = Json::array(), topic_terms = Json::array(), document_topics = Json::array(), lengths = Json::array();
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (const auto [topic, count] : model[words[w]]) {
      if (place[topic] < topics.size()) phi[place[topic]][w] += count;
    }
    vocabulary.push_back(std::string(model.vocabulary[words[w]]));
    frequency.push_back(frequencies[words[w]]);
  }
  const auto to_shares = [](std::vector<double>& weights) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    Json shares = Json::array();
    for (const double weight : weights) shares.push_back(static_cast<float>(weight / sum));
    return shares;
  };
  for (auto& row : phi) topic_terms.push_back(to_shares(row));
  for (const Mixture& mixture : documents.first(std::min(documents.size(), kPyldavisDocuments))) {
    std::vector<double> theta(topics.size());
    for (std::size_t i = 0; i < topics.size(); ++i) theta[i] = std::max(1e-9, mixture.others * model.prior.alpha[topics[i]]);
    for (const auto [topic, share] : mixture.topics) {
      if (place[topic] < topics.size()) theta[place[topic]] = std::max(1e-9, share);
    }
    document_topics.push_back(to_shares(theta));
    lengths.push_back(mixture.tokens);
  }
  const Json data = {{"topic_term_dists", topic_terms},
                     {"doc_topic_dists", document_topics},
                     {"doc_lengths", lengths},
                     {"vocab", vocabulary},
                     {"term_frequency", frequency}};
  return data.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_pages(const ModelFolder& folder, const Model& model, const Examples& examples, std::span<const Mixture> documents,
                 const std::string& about) {
  write_aside(folder.path() / "index.html", page_of(model, examples, folder.path().filename().string(), about));
  write_aside(folder.path() / "pyldavis.json", pyldavis_of(model, documents));
}

}  // namespace shoal::learn::topic

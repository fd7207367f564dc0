// Small corpora with topics, made by hand or by a seed, and the models that their counts are. For the tests of topic models; threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/core/seed.h"
#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

struct Assigned {
  std::vector<std::uint32_t> words;
  std::vector<Topic> topics;  // of each token
};

// Documents of 0 to `longest` tokens, each length, word and topic as likely as any other.
inline std::vector<Assigned> random_assignments(std::uint32_t documents, std::uint32_t longest, std::uint32_t words, std::uint32_t topics,
                                                std::uint64_t seed) {
  std::vector<Assigned> made(documents);
  for (std::uint32_t d = 0; d < documents; ++d) {
    const std::uint32_t length = random_words(seed, 0, d, 0)[0] % (longest + 1);
    for (std::uint32_t i = 0; i < length; ++i) {
      const auto drawn = random_words(seed, 1 + i, d, 1);
      made[d].words.push_back(drawn[0] % words);
      made[d].topics.push_back(drawn[1] % topics);
    }
  }
  return made;
}

// The model with these documents' counts; its words are called w0, w1, ...
inline Model counted(const std::vector<Assigned>& documents, const Prior& prior, std::uint32_t words) {
  Model model;
  model.prior = prior;
  model.totals.assign(prior.alpha.size(), 0);
  std::vector<std::vector<std::uint32_t>> dense(words, std::vector<std::uint32_t>(prior.alpha.size()));
  for (const Assigned& document : documents) {
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      ++dense[document.words[i]][document.topics[i]];
      ++model.totals[document.topics[i]];
    }
  }
  for (std::uint32_t w = 0; w < words; ++w) {
    model.vocabulary.number("w" + std::to_string(w));
    for (Topic k = 0; k < prior.alpha.size(); ++k) {
      if (dense[w][k] > 0) model.counts.push_back({k, dense[w][k]});
    }
    model.offsets.push_back(model.counts.size());
  }
  return model;
}

inline double phi_of(const Model& model, std::uint32_t w, Topic k) {
  double count = 0;
  for (const TopicCount& pair : model[w]) count += pair.topic == k ? pair.count : 0;
  return (count + model.prior.beta) / (static_cast<double>(model.totals[k]) + model.beta_sum());
}

}  // namespace shoal::learn::topic

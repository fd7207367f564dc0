// A topic model (latent Dirichlet allocation; Blei, Ng and Jordan, JMLR 2003; collapsed as Griffiths and Steyvers, PNAS 2004): how many tokens
// of each word have each topic.
//
//   phi_wk = (C_wk + beta) / (C_k + V beta)     the probability of word w in topic k
//   theta_dk = (C_dk + alpha_k) / (L_d + sum of alpha)
//
// Values; share across threads while nobody changes them.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "shoal/data/names.h"

namespace shoal::learn::topic {

using Topic = std::uint32_t;

struct TopicCount {
  Topic topic;
  std::uint32_t count;
  friend bool operator==(const TopicCount&, const TopicCount&) = default;
};

struct Prior {
  std::vector<double> alpha;  // by topic; all above 0
  double beta = 0.01;         // of each word; above 0
  double alpha_sum() const { return std::accumulate(alpha.begin(), alpha.end(), 0.0); }
};

struct Model {
  Prior prior;
  data::Names vocabulary;
  std::vector<std::uint64_t> offsets = {0};  // word w has counts[offsets[w]] to counts[offsets[w + 1] - 1]
  std::vector<TopicCount> counts;            // of a word, by ascending topic; none is 0
  std::vector<std::uint64_t> totals;         // C_k: tokens of each topic

  std::uint32_t topics() const { return static_cast<std::uint32_t>(totals.size()); }
  std::uint32_t words() const { return static_cast<std::uint32_t>(offsets.size() - 1); }
  std::span<const TopicCount> operator[](std::uint32_t word) const {
    return std::span(counts).subspan(offsets[word], offsets[word + 1] - offsets[word]);
  }
  double beta_sum() const { return prior.beta * words(); }
};

}  // namespace shoal::learn::topic

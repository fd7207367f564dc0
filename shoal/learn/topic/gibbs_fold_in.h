// The topics of a document that the model has not seen, drawn: Gibbs sampling of its tokens' topics with the model held fast (Griffiths and
// Steyvers, PNAS 2004),
//
//   p(z_i = k) in proportion to (C_dk without token i + alpha_k) phi_wk
//
// Exact: costs the word's row and the document's topics a draw. The same seed and number of a document give the same topics.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/mixture.h"
#include "shoal/learn/topic/phi.h"

namespace shoal::learn::topic {

// How many of a document's tokens have each topic, and what a further one would be. Threads: one each.
class DrawnTopics {
 public:
  explicit DrawnTopics(const Phi& phi);
  void clear();
  void add(Topic topic);
  void remove(Topic topic);
  double weight(std::uint32_t word) const;               // sum over k of (C_dk + alpha_k) phi_wk
  Topic draw(std::uint32_t word, double uniform) const;  // in proportion to the sum's terms; uniform in [0, 1)
  std::span<const Topic> held() const { return held_; }
  double count(Topic topic) const { return counts_[topic]; }

 private:
  const Phi& phi_;  // lives as long as this
  std::vector<double> counts_;
  std::vector<Topic> held_;         // whose count is not 0
  std::vector<double> prior_upto_;  // sum over j up to k of alpha_j floor_j
};

struct GibbsFoldInOptions {
  unsigned burn_in = 20, samples = 10;  // sweeps that do not count, and that do
  std::uint64_t seed = 1;
};

// Keeps its memory from document to document; threads: one each.
class GibbsFoldIn {
 public:
  explicit GibbsFoldIn(const Phi& phi, GibbsFoldInOptions options = {}) : phi_(phi), options_(options), drawn_(phi), sums_(phi.topics()) {}
  // As FoldIn; theta is the mean over the samples.
  void operator()(std::span<const std::uint32_t> words, std::uint64_t document, Mixture& to);

 private:
  const Phi& phi_;  // lives as long as this
  GibbsFoldInOptions options_;
  DrawnTopics drawn_;
  std::vector<double> sums_;  // of counts over samples, by topic
  std::vector<Topic> summed_, topics_;
  std::vector<std::uint32_t> words_;
};

}  // namespace shoal::learn::topic

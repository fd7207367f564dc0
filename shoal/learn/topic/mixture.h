// The topics of one document: theta, sparse. Topics that are not named share what is left in proportion to alpha, so that theta sums to 1:
//
//   theta_k = its share, or others * alpha_k
//
// Values; share across threads while nobody changes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/phi.h"

namespace shoal::learn::topic {

struct TopicShare {
  Topic topic;
  double share;
};

struct Mixture {
  std::vector<TopicShare> topics;  // in no order, until keep_largest has sorted them by topic
  double others = 0;               // of a unit of alpha
  std::uint64_t tokens = 0;        // that say something: of words that the model knows
  std::uint64_t unknown = 0;       // tokens of other words

  // Names no topic with a smaller share, and at most `most`, those with the largest shares; the others take over what these had.
  void keep_largest(const Phi& phi, double smallest, std::size_t most);
};

// theta of a document whose tokens have these counts of topics: (C_dk + alpha_k) / (L_d + sum of alpha).
Mixture mixture_of(std::span<const TopicCount> counts, std::span<const double> alpha, double alpha_sum);
inline Mixture mixture_of(std::span<const TopicCount> counts, const Phi& phi) { return mixture_of(counts, phi.alpha(), phi.alpha_sum()); }

// sum over k of theta_k phi_wk for words that come one after another. Threads: one each.
class Predictive {
 public:
  explicit Predictive(const Phi& phi) : phi_(phi), excess_(phi.topics()) {}
  // Of this mixture from here on; it is read now and need not live.
  void take(const Mixture& mixture);
  double operator()(std::uint32_t word) const;  // a word that the model knows

 private:
  const Phi& phi_;              // lives as long as this
  std::vector<double> excess_;  // theta_k - others * alpha_k: 0 but for the topics that are named
  std::vector<Topic> named_;
  double others_ = 0, floor_ = 0;  // floor_: sum over named topics of excess_k floor_k
};

}  // namespace shoal::learn::topic

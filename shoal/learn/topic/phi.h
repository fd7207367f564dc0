// A model as inference takes it: the probability of each word in each topic, as a floor that all words share and what a word's row has above it:
//
//   phi_wk = floor_k + rise_wk,   floor_k = beta / (C_k + V beta),   rise_wk = C_wk / (C_k + V beta), 0 for topics that the word never had
//
// so that it takes a number a pair of the counts, whatever topics times words is. Immutable; share across threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/model.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

constexpr std::uint32_t kUnknown = text::kUnknownWord;

struct TopicRise {
  Topic topic;
  float rise;
};

class Phi {
 public:
  explicit Phi(const Model& model);

  std::uint32_t topics() const { return static_cast<std::uint32_t>(alpha_.size()); }
  std::uint32_t words() const { return static_cast<std::uint32_t>(prior_.size()); }
  bool knows(std::uint32_t word) const { return word < words(); }
  std::span<const TopicRise> operator[](std::uint32_t word) const {  // by ascending topic
    return std::span(rises_).subspan(offsets_[word], offsets_[word + 1] - offsets_[word]);
  }
  const std::vector<double>& floor() const { return floor_; }
  const std::vector<double>& alpha() const { return alpha_; }
  double alpha_sum() const { return alpha_sum_; }
  double prior(std::uint32_t word) const { return prior_[word]; }  // sum over k of alpha_k phi_wk
  double prior_floor() const { return prior_floor_; }              // sum over k of alpha_k floor_k

 private:
  std::vector<double> alpha_, floor_, prior_;
  double alpha_sum_, prior_floor_ = 0;
  std::vector<std::uint64_t> offsets_;
  std::vector<TopicRise> rises_;
};

}  // namespace shoal::learn::topic

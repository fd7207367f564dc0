// Topics for tokens that have none: each is drawn from its distribution given those that were drawn before it,
//
//   p(k)  ~  (C_dk + alpha_k) (C_wk + beta) / (C_k + V beta)
//          =  C_dk psi_k  +  C_wk a_k  +  beta a_k        psi_k = (C_wk + beta) / (C_k + V beta),   a_k = alpha_k / (C_k + V beta)
//
// with counts that grow as tokens get topics, the words of a slice one after another. So words keep to few topics from the start, and rows stay short:
// a random start, in which every token may have any topic, needs room for as many pairs of word and topic as there are tokens, or topics times words.
//
// The first term is summed over the document's table, the second's sum is kept while a word's tokens are drawn, the third has a tree of the a_k, for
// C_k changes at every token. Tokens that have a topic already, by seed words, keep it. Threads: one, the worker's.
#pragma once

#include <vector>

#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/sampler.h"
#include "shoal/learn/topic/weight_tree.h"

namespace shoal::learn::topic {

inline constexpr Topic kNoTopic = 0xFFFFFFFF;

class OnlineStart final : public Sampler {
 public:
  explicit OnlineStart(std::uint32_t topics) : row_(topics), a_(topics), weights_(topics) {}
  // Tokens of the block have kNoTopic, or what they are to begin with; none is counted.
  Drawn sample(const Visit& visit) override;
  std::size_t memory() const override { return row_.memory() + a_.memory() + (weights_.size() + of_document_.size()) * sizeof(double); }

 private:
  Topic draw(const Visit& visit, const DocumentCounts& document, double row_sum, std::uint64_t bits);

  WordCounts row_;
  WeightTree a_;
  std::vector<double> weights_;      // of the tree, as a visit begins
  std::vector<double> of_document_;  // of its entries
};

}  // namespace shoal::learn::topic

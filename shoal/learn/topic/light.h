// LightLDA (Yuan et al., arXiv 1412.1576): Metropolis-Hastings steps, for which no topics are looked through but those of the document's
// table, for a count. A token's chain begins at its topic, and word and document propose where to go in turn, `pairs` times each:
//
//   word       q_w(k)  ~  (C_wk + beta) / (C_k + V beta)     as it was when the word's row came: an alias table
//   document   q_d(k)  ~  C_dk + alpha_k                     the topic of another token of the document, or one from the prior
//
//   s -> t with the chance   p(t) q(s) / (p(s) q(t)),   p(k) = (C_dk + alpha_k) (C_wk + beta) / (C_k + V beta)
//
// p is of the counts as they are now, without the token. As published, but for three things:
//
//   The published sampler evaluates q_w from counts that have changed since; here weights are kept beside the table's bins, rounded as
//   they are drawn.
//   Its proposals count the token itself, so that where a chain begins decides how it may go on, which draws from another distribution:
//   on an enumerated posterior of 256 states chi-square is 7,005 instead of 267. Here neither proposal knows the token: where the word's
//   table gives its topic for the token's own sake, another is drawn.
//   A word's table is made when its tokens are drawn instead of with all of its slice's: it is fresher, and one is enough.
//
// A table has one bin for each topic where the row has more than half of them; otherwise one for each topic of the row, beside one table
// for beta that all words share. Threads: one.
#pragma once

#include <vector>

#include "shoal/learn/topic/alias.h"
#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/document_order.h"
#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {

class Light final : public Sampler {
 public:
  Light(std::uint32_t topics, const Block& block, unsigned pairs) : pairs_(pairs), order_(block), row_(topics), inverse_(topics), q_(topics) {}
  Drawn begin_round(const Round& round) override;
  Drawn sample(const Visit& visit) override;
  std::size_t memory() const override;

 private:
  class Bits;
  struct Term {  // of p and q, without the token
    Topic topic;
    double document, word, total, q;
  };
  void begin(const Visit& visit);
  void lay_table(std::span<const TopicCount> row, double beta);
  void clear_table();
  Topic from_word(Topic own, double own_q, Bits& bits) const;
  Topic from_document(const Block& block, std::span<const std::uint32_t> tokens, std::uint32_t own_position, Bits& bits) const;

  const unsigned pairs_;
  DocumentOrder order_;
  std::uint32_t of_block_ = 0;  // order_
  WordCounts row_;
  Alias alpha_, beta_, word_;
  double alpha_sum_ = 0, beta_mass_ = 0, row_mass_ = 0;
  bool dense_ = false;
  std::vector<double> inverse_;  // 1 / (C_k + V beta) as the visit began
  std::vector<double> q_;        // of q_w: what the tables draw with
  std::vector<Topic> bins_;      // topics of word_, where it is not dense
  std::vector<double> weights_;
};

}  // namespace shoal::learn::topic

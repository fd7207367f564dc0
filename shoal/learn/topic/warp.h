// WarpLDA (Chen et al., PVLDB 9(10), 2016): Metropolis-Hastings in two passes, each of which knows one kind of counts only, with all
// changes of counts delayed to its end. Proposals are drawn in one pass and taken or left in the other, `steps` for each token:
//
//   pass       proposes            takes t instead of s with the chance
//   word       C_wk + beta         (C_wt + beta) (C_s + V beta) / ((C_ws + beta) (C_t + V beta))
//   document   C_dk + alpha_k      (C_dt + alpha_t) (C_s + V beta) / ((C_ds + alpha_s) (C_t + V beta))
//
// The document pass goes before the round of slices, over this worker's documents; the word pass is the visit of a slice. What the
// document pass changed comes to a word's row when the row comes by: until then others' rows are as old. Totals are those that the pass
// began with. No count has the token itself, as in light.h.
// Counts are as old as a pass, so the distribution is right only approximately. After a round they are those of the topics, exactly.
// Threads: one.
#pragma once

#include <vector>

#include "shoal/learn/topic/alias.h"
#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/document_order.h"
#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {

class Warp final : public Sampler {
 public:
  Warp(std::uint32_t topics, const Block& block, unsigned steps)
      : steps_(steps), order_(block), row_(topics), totals_(topics), document_(topics), proposals_(std::size_t{steps} * block.tokens()) {}
  Drawn begin_round(const Round& round) override;
  Drawn sample(const Visit& visit) override;
  std::size_t memory() const override;

 private:
  void freeze(const Round& round);
  void propose_from_row(const Visit& visit, std::uint32_t begin, std::uint32_t end);

  const unsigned steps_;
  const DocumentOrder order_;
  WordCounts row_;
  Alias alpha_, word_;
  std::vector<double> totals_;            // C_k + V beta as the pass began
  std::vector<std::uint32_t> document_;   // C_dk of one document as the pass began
  std::vector<Topic> of_document_;        // of one document's tokens, as the document pass leaves them
  std::vector<Topic> counted_;            // of each token: the topic that its word's row counts
  std::vector<Topic> proposals_;          // of each token, steps_ each: of the pass before
  bool proposed_ = false;                 // there was one
  std::vector<double> weights_;
};

}  // namespace shoal::learn::topic

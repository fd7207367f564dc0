// The topics of a document that the model has not seen, with the model held fast: collapsed variational Bayes of order 0 (Asuncion, Welling,
// Smyth and Teh, UAI 2009), which draws nothing and so gives the same topics each time. N_k is how many of its tokens topic k is expected to have:
//
//   N_k <- sum over words w of n_w q_wk,   q_wk = (N_k + alpha_k) phi_wk / sum over j of (N_j + alpha_j) phi_wj,   from N_k in proportion to alpha_k
//
// A pass costs as much as the rows of the document's words are long. After a few, most topics hardly change: those that do are taken out, into a
// small dense matrix, and passed over until they stand; then all are looked at again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/mixture.h"
#include "shoal/learn/topic/phi.h"

namespace shoal::learn::topic {

struct FoldInOptions {
  unsigned passes = 100;   // at most, over the topics that change
  double settled = 3e-3;   // they stand when a pass moves less than this share of the document's tokens
  bool thorough = false;   // all passes, and over all topics: what the others are measured against
};

// Keeps its memory from document to document; threads: one each.
class FoldIn {
 public:
  explicit FoldIn(const Phi& phi, FoldInOptions options = {});
  // words: of the document's tokens, in any order; what the model does not know is counted and left out. A document without words that
  // the model knows has the prior's topics.
  void operator()(std::span<const std::uint32_t> words, Mixture& to);

 private:
  struct Word {
    std::uint32_t word;
    float count;
    double taken_out;  // of the sum in q's denominator: what topics add that are not passed over
  };
  void begin(std::span<const std::uint32_t> words, Mixture& to);
  void first_pass();
  void whole_pass();
  void settle(double tokens);
  void take_up(double responsible);
  void choose_active();
  double active_pass();
  void finish(Mixture& to);

  const Phi& phi_;  // lives as long as this
  FoldInOptions options_;
  std::vector<std::uint32_t> sorted_;
  std::vector<Word> words_;
  // By topic; touched_ names those that are not 0.
  std::vector<float> excess_;  // N_k - others * alpha_k
  std::vector<float> gained_;  // sum over w of n_w rise_wk / denominator_w, in a pass
  std::vector<double> expected_;  // N_k
  std::vector<Topic> touched_;
  double others_ = 0;  // what topics that no row names expect, of a unit of alpha
  double floor_ = 0;   // sum over touched topics of excess_k floor_k
  // The topics that change: a column each.
  std::vector<Topic> active_;
  std::vector<std::uint16_t> column_;  // by topic
  std::vector<float> matrix_, held_, prior_, gain_;
};

}  // namespace shoal::learn::topic

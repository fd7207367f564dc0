// How well a model foretells words that it has not seen: half of each document is shown, its topics are folded in, and the other half is scored
// (document completion; Wallach, Murray, Salakhutdinov and Mimno, ICML 2009, section 5.1):
//
//   perplexity = exp(-sum over hidden tokens of ln sum over k of theta_k phi_wk / hidden tokens)
//
// Cheap, and its figures scatter little. Words are in the model's numbers, kUnknown where it has none. Figures compare only for the same split.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "shoal/learn/topic/fold_in.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

// A sum over documents: parts of members and threads add up.
struct Foretold {
  double log_probability = 0;
  std::uint64_t tokens = 0, unknown = 0;  // that were scored; that could not be, because the model does not know their words

  double perplexity() const;  // 0 where there was nothing to score
  Foretold& operator+=(const Foretold& other);
};

// Documents' tokens, each in the first half or the second, as likely the one as the other. `first_document` is the first's number among all
// members', so that a token's half does not depend on who has it.
std::pair<text::Documents, text::Documents> halves(const text::Documents& documents, std::uint64_t seed, std::uint64_t first_document = 0);

// Scores document d of hidden after document d of shown, for begin <= d < end. Throws Error{invalid_argument} where they are not as many.
Foretold complete(const Phi& phi, const text::Documents& shown, const text::Documents& hidden, std::size_t begin, std::size_t end,
                  const FoldInOptions& options = {});
Foretold complete(const Phi& phi, const text::Documents& shown, const text::Documents& hidden, const FoldInOptions& options = {});

// The same by the mean over several states of one model, as Bayes has it: topics of two states need not be the same ones, but what they foretell can
// be averaged (Griffiths and Steyvers, PNAS 2004), and foretells better than any of them:
//
//   p(hidden token) = 1 / S  sum over states s of  sum over k of theta_k^s phi_wk^s
//
// 8 bytes a hidden token. Threads: one.
class MeanCompletion {
 public:
  // Both outlive it.
  MeanCompletion(const text::Documents& shown, const text::Documents& hidden) : shown_(shown), hidden_(hidden), sums_(hidden.tokens()) {}
  Foretold add(const Phi& phi);      // a state; what it foretells alone
  unsigned states() const { return states_; }
  Foretold foretold() const;         // after one at least

 private:
  const text::Documents &shown_, &hidden_;
  std::vector<double> sums_;         // of probabilities, by hidden token; 0 where the model does not know the word
  unsigned states_ = 0;
};

}  // namespace shoal::learn::topic

// How well a model foretells words that it has not seen: half of each document is shown, its topics are folded in, and the other half is scored
// (document completion; Wallach, Murray, Salakhutdinov and Mimno, ICML 2009, section 5.1):
//
//   perplexity = exp(-sum over hidden tokens of ln sum over k of theta_k phi_wk / hidden tokens)
//
// Cheap, and its figures scatter little. Words are in the model's numbers, kUnknown where it has none. Figures compare only for the same split.
#pragma once

#include <cstdint>
#include <utility>

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

}  // namespace shoal::learn::topic

// How likely whole documents are that the model has not seen: each word given those before it, with their topics drawn by particles (Wallach,
// Murray, Salakhutdinov and Mimno, ICML 2009, algorithm 3):
//
//   ln p(w) = sum over n of ln mean over particles of sum over k of (C_k of words before n + alpha_k) / (n - 1 + sum of alpha) phi_wk
//
// Before each word a particle draws the topics of all before it anew, which costs the square of a document's length, or leaves them (`redraw`
// off): less work, and an estimate that is somewhat low. For small sets; completion.h is for large ones.
#pragma once

#include <cstdint>

#include "shoal/learn/topic/completion.h"

namespace shoal::learn::topic {

struct LeftToRightOptions {
  unsigned particles = 10;
  bool redraw = true;
  std::uint64_t seed = 1;
};

// Documents begin <= d < end. Words that the model does not know are counted and left out.
Foretold left_to_right(const Phi& phi, const text::Documents& documents, std::size_t begin, std::size_t end, const LeftToRightOptions& options = {});

}  // namespace shoal::learn::topic

// The X+Y sampler of model-parallel LDA (Zheng et al., arXiv 1411.2305, section 3): exact, word by word. With the token itself taken
// out of all counts,
//
//   p(k)  ~  alpha_k phi_k  +  C_dk phi_k        phi_k = (C_wk + beta) / (C_k + V beta)
//              X                 Y
//
// phi and the sum of X are laid out when a word's row comes and then kept; the sum of Y goes over the topics of the document. A draw
// that falls into X looks through all topics: seldom, where documents are long. exact.h divides the same weights so that it never has to.
// Threads: one.
#pragma once

#include <vector>

#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {

class XY final : public Sampler {
 public:
  explicit XY(std::uint32_t topics) : row_(topics), phi_(topics) {}
  Drawn sample(const Visit& visit) override;
  std::size_t memory() const override { return row_.memory() + phi_.size() * sizeof(phi_[0]); }

 private:
  WordCounts row_;
  std::vector<double> phi_;
};

}  // namespace shoal::learn::topic

// Plain collapsed Gibbs sampling (Griffiths and Steyvers, PNAS 2004, equation 5): every topic is weighed for every token, in double
// precision. As slow as there are topics, and nothing in it that could be wrong: what the other samplers are compared with. Threads: one.
#pragma once

#include <vector>

#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {

class Gibbs final : public Sampler {
 public:
  explicit Gibbs(std::uint32_t topics) : row_(topics), document_(topics), sums_(topics) {}
  Drawn sample(const Visit& visit) override;
  std::size_t memory() const override { return row_.memory() + document_.size() * sizeof(document_[0]) + sums_.size() * sizeof(sums_[0]); }

 private:
  WordCounts row_;
  std::vector<std::uint32_t> document_;  // C_dk of the token's document
  std::vector<double> sums_;             // of weights up to each topic
};

}  // namespace shoal::learn::topic

// The topics of one document by variational Bayes, as stream.h says: gamma_dk until it stands. Keeps its memory from document to document; threads:
// one each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn::topic {

class Posterior {
 public:
  struct Word {
    std::uint32_t row;
    float count;
  };

  // iterations, settled: as in StreamOptions.
  Posterior(std::span<const double> alpha, unsigned iterations, double settled);

  // rows: a number for each topic of each row, in proportion to exp(E ln beta); each row may have a factor of its own, which says nothing.
  void operator()(std::span<const Word> words, std::span<const float> rows);

  std::span<const float> gamma() const { return gamma_; }
  // phi_dwk is theta_k rows_wk / norm_w: theta in proportion to exp(E ln theta), and of each word its count over its norm.
  std::span<const float> theta() const { return theta_; }
  std::span<const float> ratios() const { return ratios_; }

 private:
  void weigh(std::span<const Word> words, std::span<const float> rows);

  std::vector<float> alpha_;
  unsigned iterations_;
  double settled_;
  std::vector<float> gamma_, theta_, sums_, ratios_;
};

}  // namespace shoal::learn::topic

#include "shoal/learn/topic/posterior.h"

#include <algorithm>
#include <cmath>

#include "shoal/learn/topic/digamma.h"

namespace shoal::learn::topic {
namespace {

constexpr float kLeastNorm = 1e-30f;  // of a norm: words whose topics the document cannot have

// In lanes, so that a compiler makes vectors of it.
float product(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0;
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

Posterior::Posterior(std::span<const double> alpha, unsigned iterations, double settled)
    : alpha_(alpha.begin(), alpha.end()), iterations_(iterations), settled_(settled), gamma_(alpha.size()), theta_(alpha.size()), sums_(alpha.size()) {}

void Posterior::operator()(std::span<const Word> words, std::span<const float> rows) {
  const std::size_t topics = alpha_.size();
  std::ranges::fill(gamma_, 1.0f);
  weigh(words, rows);
  for (unsigned iteration = 0; iteration < iterations_; ++iteration) {
    std::ranges::fill(sums_, 0.0f);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const float ratio = ratios_[i];
      const float* const row = rows.data() + words[i].row * topics;
      for (std::size_t k = 0; k < topics; ++k) sums_[k] += ratio * row[k];
    }
    double change = 0;
    for (std::size_t k = 0; k < topics; ++k) {
      const float next = alpha_[k] + theta_[k] * sums_[k];
      change += std::abs(next - gamma_[k]);
      gamma_[k] = next;
    }
    weigh(words, rows);
    if (change < settled_ * static_cast<double>(topics)) break;
  }
}

void Posterior::weigh(std::span<const Word> words, std::span<const float> rows) {
  const std::size_t topics = alpha_.size();
  exp_digammas(std::span<const float>(gamma_), digamma(*std::ranges::max_element(gamma_)), theta_.data());
  ratios_.resize(words.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    ratios_[i] = words[i].count / std::max(kLeastNorm, product(theta_, rows.subspan(words[i].row * topics, topics)));
}

}  // namespace shoal::learn::topic

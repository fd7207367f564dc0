#include "shoal/learn/topic/coherence.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::topic {
namespace {

constexpr double kEpsilon = 1e-12;
const double kLeastScore = std::log(kEpsilon);

double probability(std::uint64_t windows, const Occurrences& in) { return static_cast<double>(windows) / static_cast<double>(in.windows()); }

double uci_of(std::uint32_t a, std::uint32_t b, const Occurrences& in) {
  if (in.of(a) == 0 || in.of(b) == 0) return kLeastScore;
  return std::log((probability(in.of(a, b), in) + kEpsilon) / (probability(in.of(a), in) * probability(in.of(b), in)));
}

double npmi_of(std::uint32_t a, std::uint32_t b, const Occurrences& in) {
  if (in.of(a) == 0 || in.of(b) == 0) return a == b ? 1 : -1;
  return uci_of(a, b, in) / -std::log(probability(in.of(a, b), in) + kEpsilon);
}

double u_mass_of(std::uint32_t a, std::uint32_t b, const Occurrences& in) {
  if (in.of(b) == 0) return kLeastScore;
  return std::log((probability(in.of(a, b), in) + kEpsilon) / probability(in.of(b), in));
}

// b before a.
template <class Measure>
double mean_over_pairs(std::span<const std::uint32_t> words, const Occurrences& in, const Measure& measure) {
  if (words.size() < 2) return 0;
  double sum = 0;
  for (std::size_t a = 1; a < words.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) sum += measure(words[a], words[b], in);
  }
  return sum / (static_cast<double>(words.size()) * static_cast<double>(words.size() - 1) / 2);
}

double length(std::span<const double> vector) {
  double sum = 0;
  for (const double value : vector) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace

double uci(std::span<const std::uint32_t> words, const Occurrences& in) { return mean_over_pairs(words, in, uci_of); }
double npmi(std::span<const std::uint32_t> words, const Occurrences& in) { return mean_over_pairs(words, in, npmi_of); }
double u_mass(std::span<const std::uint32_t> words, const Occurrences& in) { return mean_over_pairs(words, in, u_mass_of); }

double c_v(std::span<const std::uint32_t> words, const Occurrences& in) {
  const std::size_t n = words.size();
  if (n < 2) return 0;
  std::vector<double> vectors(n * n), sum(n);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) sum[b] += vectors[a * n + b] = npmi_of(words[a], words[b], in);
  }
  double cosines = 0;
  for (std::size_t a = 0; a < n; ++a) {
    const std::span<const double> vector = std::span(vectors).subspan(a * n, n);
    double product = 0;
    for (std::size_t b = 0; b < n; ++b) product += vector[b] * sum[b];
    const double lengths = length(vector) * length(sum);
    cosines += lengths > 0 ? product / lengths : 0;
  }
  return cosines / static_cast<double>(n);
}

std::uint64_t missing(std::span<const std::uint32_t> words, const Occurrences& in) {
  return static_cast<std::uint64_t>(std::count_if(words.begin(), words.end(), [&in](std::uint32_t word) { return in.of(word) == 0; }));
}

}  // namespace shoal::learn::topic

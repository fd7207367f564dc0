#include "shoal/learn/topic/prior.h"

#include <algorithm>
#include <cmath>

#include "shoal/core/error.h"
#include "shoal/learn/topic/digamma.h"

namespace shoal::learn::topic {
namespace {

constexpr double kShape = 1.001, kScale = 1;
constexpr double kSmallest = 1e-5;  // of alpha_k and beta: below it, single precision loses them beside counts
constexpr std::uint32_t kExact = 1024;
constexpr double kWidth = 1.02;

std::uint32_t bin_of(std::uint64_t count) {
  if (count < kExact) return static_cast<std::uint32_t>(count);
  return kExact + static_cast<std::uint32_t>(std::log(static_cast<double>(count) / kExact) / std::log(kWidth));
}
// The count in the middle of a bin.
double count_of(std::uint32_t bin) { return bin < kExact ? bin : kExact * std::pow(kWidth, bin - kExact + 0.5); }

constexpr std::uint64_t kLengths = 1ull << 32, kPairs = kLengths + 1;  // beside the numbers of topics

}  // namespace

void Histogram::add(std::uint64_t count, std::uint64_t times) {
  if (count > 0) add_bin(bin_of(count), times);
}

void Histogram::add_bin(std::uint32_t bin, std::uint64_t times) {
  if (bin >= times_.size()) times_.resize(bin + 1);
  times_[bin] += times;
}

Histogram& Histogram::operator+=(const Histogram& other) {
  if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
  for (std::size_t bin = 0; bin < other.times_.size(); ++bin) times_[bin] += other.times_[bin];
  return *this;
}

double Histogram::rise(double a) const {
  double sum = 0, upto = 0;  // upto: psi(n + a) - psi(a), a term more for each n
  const std::size_t exact = std::min<std::size_t>(times_.size(), kExact);
  for (std::size_t n = 1; n < exact; ++n) {
    upto += 1 / (a + static_cast<double>(n - 1));
    sum += static_cast<double>(times_[n]) * upto;
  }
  const double begin = times_.size() > kExact ? digamma(a) : 0;
  for (std::size_t bin = kExact; bin < times_.size(); ++bin) {
    if (times_[bin] > 0) sum += static_cast<double>(times_[bin]) * (digamma(count_of(static_cast<std::uint32_t>(bin)) + a) - begin);
  }
  return sum;
}

void PriorEvidence::add_document(std::span<const TopicCount> counts) {
  std::uint64_t length = 0;
  for (const auto [topic, count] : counts) {
    topics_[topic].add(count);
    length += count;
  }
  lengths_.add(length);
}

void PriorEvidence::add_row(std::span<const TopicCount> counts) {
  for (const TopicCount& pair : counts) pairs_.add(pair.count);
}

PriorEvidence& PriorEvidence::operator+=(const PriorEvidence& other) {
  for (std::size_t k = 0; k < topics_.size(); ++k) topics_[k] += other.topics_[k];
  lengths_ += other.lengths_;
  pairs_ += other.pairs_;
  return *this;
}

std::vector<std::uint64_t> PriorEvidence::numbers() const {
  std::vector<std::uint64_t> numbers;
  const auto append = [&numbers](std::uint64_t whose, const Histogram& histogram) {
    for (std::size_t bin = 0; bin < histogram.bins().size(); ++bin) {
      if (histogram.bins()[bin] > 0) numbers.insert(numbers.end(), {whose, bin, histogram.bins()[bin]});
    }
  };
  for (std::size_t k = 0; k < topics_.size(); ++k) append(k, topics_[k]);
  append(kLengths, lengths_);
  append(kPairs, pairs_);
  return numbers;
}

void PriorEvidence::add_numbers(std::span<const std::uint64_t> numbers) {
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3) {
    const std::uint64_t whose = numbers[i];
    if ((whose >= topics_.size() && whose != kLengths && whose != kPairs) || numbers[i + 1] > bin_of(UINT64_MAX))
      throw Error(Code::mismatch, "what came is no count for the prior", "", "run the same program on all members");
    Histogram& histogram = whose == kLengths ? lengths_ : whose == kPairs ? pairs_ : topics_[whose];
    histogram.add_bin(static_cast<std::uint32_t>(numbers[i + 1]), numbers[i + 2]);
  }
}

Prior optimised(const Prior& prior, const PriorEvidence& evidence, std::span<const std::uint64_t> totals, std::uint32_t words, AlphaForm form,
                unsigned iterations) {
  Prior best = prior;
  const auto topics_in_all = static_cast<double>(best.alpha.size());
  if (form == AlphaForm::of_all_alike) best.alpha.assign(best.alpha.size(), prior.alpha_sum() / topics_in_all);
  for (unsigned iteration = 0; iteration < iterations; ++iteration) {
    const double documents = evidence.lengths_.rise(best.alpha_sum());
    if (form == AlphaForm::of_all_alike) {
      double rise = 0;
      for (const Histogram& topic : evidence.topics_) rise += topic.rise(best.alpha[0]);
      const double alpha = std::max(kSmallest, (best.alpha[0] * rise + kShape - 1) / (topics_in_all * documents + 1 / kScale));
      best.alpha.assign(best.alpha.size(), alpha);
    } else {
      for (std::size_t k = 0; k < best.alpha.size(); ++k)
        best.alpha[k] = std::max(kSmallest, (best.alpha[k] * evidence.topics_[k].rise(best.alpha[k]) + kShape - 1) / (documents + 1 / kScale));
    }
    const double beta_sum = best.beta * words, begin = digamma(beta_sum);
    double topics = 0;
    for (const std::uint64_t total : totals) topics += digamma(static_cast<double>(total) + beta_sum) - begin;
    best.beta = std::max(kSmallest, (best.beta * evidence.pairs_.rise(best.beta) + kShape - 1) / (words * topics + 1 / kScale));
  }
  return best;
}

}  // namespace shoal::learn::topic

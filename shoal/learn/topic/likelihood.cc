#include "shoal/learn/topic/likelihood.h"

#include <cmath>

#include <algorithm>

namespace shoal::learn::topic {
namespace {

// std::lgamma leaves the sign in a variable that all threads share.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// The logarithm of a product of many factors above 0, with one logarithm at the end: mantissa and exponent are kept apart.
class LogProduct {
 public:
  void times(double factor) {
    product_ *= factor;
    if (product_ < 1e-100 || product_ > 1e100) fold();
  }
  double log() {
    fold();
    return std::log(product_) + static_cast<double>(exponent_) * M_LN2;
  }

 private:
  void fold() {
    int exponent = 0;
    product_ = std::frexp(product_, &exponent);
    exponent_ += exponent;
  }
  double product_ = 1;
  std::int64_t exponent_ = 0;
};

constexpr std::uint32_t kMultiplied = 64;  // from here on two lgamma take less time than the product

}  // namespace

LogLikelihood& LogLikelihood::operator+=(const LogLikelihood& other) {
  documents += other.documents;
  words += other.words;
  topics += other.topics;
  tokens += other.tokens;
  return *this;
}

Rise::Rise(double a, std::uint32_t tabulated) : a_(a), log_gamma_(log_gamma(a)), table_(tabulated) {
  for (std::uint32_t count = 1; count < tabulated; ++count) table_[count] = table_[count - 1] + std::log(a + count - 1);
}

double Rise::beyond(std::uint64_t count) const { return log_gamma(a_ + static_cast<double>(count)) - log_gamma_; }

Likelihood::Likelihood(const Prior& prior, std::uint32_t words)
    : alpha_(prior.alpha), length_(prior.alpha_sum()), row_(prior.beta), total_(prior.beta * words, 1) {}

void Likelihood::add_document(std::span<const TopicCount> counts, LogLikelihood& to) const {
  LogProduct product;
  double large = 0;
  std::uint64_t length = 0;
  for (const auto [topic, count] : counts) {
    const double alpha = alpha_[topic];
    length += count;
    if (count < kMultiplied) {
      for (std::uint32_t i = 0; i < count; ++i) product.times(alpha + i);
    } else {
      large += log_gamma(alpha + count) - log_gamma(alpha);
    }
  }
  to.documents += product.log() + large - length_(length);
  to.tokens += length;
}

void Likelihood::add_row(std::span<const TopicCount> counts, LogLikelihood& to) const {
  double sum = 0;
  for (const TopicCount& pair : counts) sum += row_(pair.count);
  to.words += sum;
}

void Likelihood::add_totals(std::span<const std::uint64_t> totals, LogLikelihood& to) const {
  for (const std::uint64_t total : totals) to.topics -= total_(total);
}

LogLikelihood log_likelihood(const Model& model) {
  const Likelihood likelihood(model.prior, model.words());
  LogLikelihood sum;
  likelihood.add_row(model.counts, sum);
  likelihood.add_totals(model.totals, sum);
  return sum;
}

std::span<const TopicCount> TopicCounter::operator()(std::span<const Topic> topics) {
  sorted_.assign(topics.begin(), topics.end());
  std::sort(sorted_.begin(), sorted_.end());
  counts_.clear();
  for (const Topic topic : sorted_) {
    if (counts_.empty() || counts_.back().topic != topic) counts_.push_back({topic, 0});
    ++counts_.back().count;
  }
  return counts_;
}

}  // namespace shoal::learn::topic

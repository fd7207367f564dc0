#include "shoal/learn/topic/mixture.h"

#include <algorithm>

namespace shoal::learn::topic {
namespace {

// What is left after the named topics, of a unit of the alpha that is left.
double left_over(const std::vector<TopicShare>& topics, const Phi& phi) {
  double share = 1, alpha = phi.alpha_sum();
  for (const TopicShare& named : topics) {
    share -= named.share;
    alpha -= phi.alpha()[named.topic];
  }
  return topics.size() < phi.topics() ? std::max(0.0, share / alpha) : 0;
}

}  // namespace

void Mixture::keep_largest(const Phi& phi, double smallest, std::size_t most) {
  std::erase_if(topics, [smallest](const TopicShare& named) { return named.share < smallest; });
  if (topics.size() > most) {
    std::nth_element(topics.begin(), topics.begin() + static_cast<std::ptrdiff_t>(most), topics.end(), [](const TopicShare& a, const TopicShare& b) {
      return a.share != b.share ? a.share > b.share : a.topic < b.topic;
    });
    topics.resize(most);
  }
  std::sort(topics.begin(), topics.end(), [](const TopicShare& a, const TopicShare& b) { return a.topic < b.topic; });
  others = left_over(topics, phi);
}

Mixture mixture_of(std::span<const TopicCount> counts, std::span<const double> alpha, double alpha_sum) {
  Mixture mixture;
  for (const TopicCount& pair : counts) mixture.tokens += pair.count;
  const double whole = static_cast<double>(mixture.tokens) + alpha_sum;
  for (const auto [topic, count] : counts) mixture.topics.push_back({topic, (count + alpha[topic]) / whole});
  mixture.others = 1 / whole;
  return mixture;
}

void Predictive::take(const Mixture& mixture) {
  for (const Topic k : named_) excess_[k] = 0;
  named_.clear();
  others_ = mixture.others;
  floor_ = 0;
  for (const auto [topic, share] : mixture.topics) {
    named_.push_back(topic);
    excess_[topic] = share - others_ * phi_.alpha()[topic];
    floor_ += excess_[topic] * phi_.floor()[topic];
  }
}

double Predictive::operator()(std::uint32_t word) const {
  double sum = others_ * phi_.prior(word) + floor_;
  for (const auto [topic, rise] : phi_[word]) sum += excess_[topic] * rise;
  return sum;
}

}  // namespace shoal::learn::topic

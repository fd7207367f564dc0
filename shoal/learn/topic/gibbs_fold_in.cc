#include "shoal/learn/topic/gibbs_fold_in.h"

#include <algorithm>

#include "shoal/core/seed.h"

namespace shoal::learn::topic {

DrawnTopics::DrawnTopics(const Phi& phi) : phi_(phi), counts_(phi.topics()) {
  double upto = 0;
  for (Topic k = 0; k < phi.topics(); ++k) prior_upto_.push_back(upto += phi.alpha()[k] * phi.floor()[k]);
}

void DrawnTopics::clear() {
  for (const Topic k : held_) counts_[k] = 0;
  held_.clear();
}

void DrawnTopics::add(Topic topic) {
  if (counts_[topic]++ == 0) held_.push_back(topic);
}

void DrawnTopics::remove(Topic topic) {
  if (--counts_[topic] > 0) return;
  *std::find(held_.begin(), held_.end(), topic) = held_.back();
  held_.pop_back();
}

// The terms are those of the row, of the floor under the document's topics, and of the floor under the prior.
double DrawnTopics::weight(std::uint32_t word) const {
  double sum = prior_upto_.back();
  for (const auto [topic, rise] : phi_[word]) sum += (counts_[topic] + phi_.alpha()[topic]) * rise;
  for (const Topic k : held_) sum += counts_[k] * phi_.floor()[k];
  return sum;
}

Topic DrawnTopics::draw(std::uint32_t word, double uniform) const {
  double left = uniform * weight(word);
  for (const auto [topic, rise] : phi_[word]) {
    left -= (counts_[topic] + phi_.alpha()[topic]) * rise;
    if (left < 0) return topic;
  }
  for (const Topic k : held_) {
    left -= counts_[k] * phi_.floor()[k];
    if (left < 0) return k;
  }
  const auto above = std::upper_bound(prior_upto_.begin(), prior_upto_.end(), left);
  return static_cast<Topic>(std::min<std::ptrdiff_t>(above - prior_upto_.begin(), phi_.topics() - 1));
}

void GibbsFoldIn::operator()(std::span<const std::uint32_t> words, std::uint64_t document, Mixture& to) {
  words_.clear();
  for (const std::uint32_t word : words) {
    if (phi_.knows(word)) words_.push_back(word);
  }
  const std::size_t tokens = words_.size();
  to.topics.clear();
  to.tokens = tokens;
  to.unknown = words.size() - tokens;
  topics_.resize(tokens);
  for (unsigned sweep = 0; sweep < options_.burn_in + options_.samples; ++sweep) {
    for (std::size_t i = 0; i < tokens; ++i) {
      if (sweep > 0) drawn_.remove(topics_[i]);
      topics_[i] = drawn_.draw(words_[i], uniform(options_.seed, document, sweep, static_cast<std::uint32_t>(i)));
      drawn_.add(topics_[i]);
    }
    if (sweep < options_.burn_in) continue;
    for (const Topic k : drawn_.held()) {
      if (sums_[k] == 0) summed_.push_back(k);
      sums_[k] += drawn_.count(k);
    }
  }
  const double whole = static_cast<double>(tokens) + phi_.alpha_sum();
  for (const Topic k : summed_) {
    to.topics.push_back({k, (sums_[k] / options_.samples + phi_.alpha()[k]) / whole});
    sums_[k] = 0;
  }
  to.others = 1 / whole;
  summed_.clear();
  drawn_.clear();
}

}  // namespace shoal::learn::topic

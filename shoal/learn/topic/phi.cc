#include "shoal/learn/topic/phi.h"

namespace shoal::learn::topic {

Phi::Phi(const Model& model) : alpha_(model.prior.alpha), floor_(model.topics()), alpha_sum_(model.prior.alpha_sum()), offsets_(model.offsets) {
  for (Topic k = 0; k < model.topics(); ++k) {
    floor_[k] = model.prior.beta / (static_cast<double>(model.totals[k]) + model.beta_sum());
    prior_floor_ += alpha_[k] * floor_[k];
  }
  prior_.assign(model.words(), prior_floor_);
  rises_.reserve(model.counts.size());
  for (std::uint32_t w = 0; w < model.words(); ++w) {
    for (const auto [topic, count] : model[w]) {
      const double rise = count / model.prior.beta * floor_[topic];
      rises_.push_back({topic, static_cast<float>(rise)});
      prior_[w] += alpha_[topic] * rise;
    }
  }
}

}  // namespace shoal::learn::topic

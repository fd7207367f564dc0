#include "shoal/learn/topic/online_start.h"

#include <algorithm>

namespace shoal::learn::topic {

Drawn OnlineStart::sample(const Visit& visit) {
  Drawn drawn;
  Block& block = visit.block;
  const auto& alpha = visit.prior.alpha;
  const auto totals = visit.totals.counts();
  const auto a_of = [&](Topic topic) { return alpha[topic] / (static_cast<double>(totals[topic]) + visit.beta_sum); };
  for (Topic topic = 0; topic < weights_.size(); ++topic) weights_[topic] = a_of(topic);
  a_.set_all(weights_);
  const auto runs = block.runs_of(visit.number);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    row_.lay_out(visit.slice.row(runs[i].place));
    double row_sum = 0;
    for (const Topic topic : row_.listed()) row_sum += row_[topic] * a_[topic];
    for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token) {
      DocumentCounts document(block, block.lines[token]);
      Topic& topic = block.topics[token];
      if (topic == kNoTopic) topic = draw(visit, document, row_sum, random_bits(visit.key, token));
      row_sum -= row_[topic] * a_[topic];
      document.add(topic);
      row_.add(topic);
      visit.totals.add(topic);
      a_.set(topic, a_of(topic));
      row_sum += row_[topic] * a_[topic];
      ++drawn.tokens;
    }
    row_.take_up(visit.slice, runs[i].place);
  }
  drawn.changed = drawn.tokens;
  return drawn;
}

Topic OnlineStart::draw(const Visit& visit, const DocumentCounts& document, double row_sum, std::uint64_t bits) {
  const auto& prior = visit.prior;
  const std::uint32_t entries = document.entries();
  if (of_document_.size() < entries) of_document_.resize(entries);
  double sum = 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    const auto [topic, count] = document[i];
    sum += of_document_[i] = count * (row_[topic] + prior.beta) * (a_[topic] / prior.alpha[topic]);
  }
  double u = unit(bits) * (sum + row_sum + prior.beta * a_.sum());
  if (u < sum) {
    std::uint32_t i = 0;
    while (i + 1 < entries && (u -= of_document_[i]) >= 0) ++i;
    return document[i].topic;
  }
  u -= sum;
  if (u < row_sum && !row_.listed().empty()) {
    for (const Topic topic : row_.listed()) {
      if ((u -= row_[topic] * a_[topic]) < 0) return topic;
    }
    return row_.listed().back();
  }
  return static_cast<Topic>(a_.at(std::max(0.0, u - row_sum) / prior.beta));
}

}  // namespace shoal::learn::topic

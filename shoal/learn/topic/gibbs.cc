#include "shoal/learn/topic/gibbs.h"

#include <algorithm>

namespace shoal::learn::topic {

Drawn Gibbs::sample(const Visit& visit) {
  Drawn drawn;
  Block& block = visit.block;
  const auto topics = static_cast<Topic>(sums_.size());
  const auto totals = visit.totals.counts();
  const auto runs = block.runs_of(visit.number);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    row_.lay_out(visit.slice.row(runs[i].place));
    for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token) {
      DocumentCounts document(block, block.lines[token]);
      const Topic own = block.topics[token];
      document.remove(own);
      row_.remove(own);
      for (std::uint32_t k = 0; k < document.entries(); ++k) document_[document[k].topic] += document[k].count;
      double sum = 0;
      for (Topic topic = 0; topic < topics; ++topic) {
        const auto total = static_cast<double>(totals[topic] - (topic == own));
        sum += (document_[topic] + visit.prior.alpha[topic]) * (row_[topic] + visit.prior.beta) / (total + visit.beta_sum);
        sums_[topic] = sum;
      }
      for (std::uint32_t k = 0; k < document.entries(); ++k) document_[document[k].topic] = 0;
      const auto past = std::ranges::upper_bound(sums_, unit(random_bits(visit.key, token)) * sum);
      const auto topic = std::min(static_cast<Topic>(past - sums_.begin()), topics - 1);
      document.add(topic);
      row_.add(topic);
      ++drawn.tokens;
      if (topic == own) continue;
      block.topics[token] = topic;
      visit.totals.move(own, topic);
      ++drawn.changed;
    }
    row_.take_up(visit.slice, runs[i].place);
  }
  return drawn;
}

}  // namespace shoal::learn::topic

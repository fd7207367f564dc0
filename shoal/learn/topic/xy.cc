#include "shoal/learn/topic/xy.h"

namespace shoal::learn::topic {

Drawn XY::sample(const Visit& visit) {
  Drawn drawn;
  Block& block = visit.block;
  const std::vector<double>& alpha = visit.prior.alpha;
  const auto totals = visit.totals.counts();
  const auto runs = block.runs_of(visit.number);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    row_.lay_out(visit.slice.row(runs[i].place));
    double x = 0;
    for (Topic topic = 0; topic < phi_.size(); ++topic) {
      phi_[topic] = (row_[topic] + visit.prior.beta) / (static_cast<double>(totals[topic]) + visit.beta_sum);
      x += alpha[topic] * phi_[topic];
    }
    const auto renew = [&](Topic topic, std::int64_t total) {
      x -= alpha[topic] * phi_[topic];
      phi_[topic] = (row_[topic] + visit.prior.beta) / (static_cast<double>(total) + visit.beta_sum);
      x += alpha[topic] * phi_[topic];
    };
    for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token) {
      DocumentCounts document(block, block.lines[token]);
      const Topic own = block.topics[token];
      document.remove(own);
      row_.remove(own);
      renew(own, totals[own] - 1);
      double y = 0;
      for (std::uint32_t k = 0; k < document.entries(); ++k) y += document[k].count * phi_[document[k].topic];
      double u = unit(random_bits(visit.key, token)) * (x + y);
      Topic topic = own;  // where rounding has left nothing
      if (u < y) {
        for (std::uint32_t k = 0; k < document.entries(); ++k) {
          topic = document[k].topic;
          if ((u -= document[k].count * phi_[topic]) < 0) break;
        }
      } else {
        u -= y;
        for (topic = 0; topic + 1 < phi_.size(); ++topic) {
          if ((u -= alpha[topic] * phi_[topic]) < 0) break;
        }
      }
      document.add(topic);
      row_.add(topic);
      ++drawn.tokens;
      if (topic != own) {
        block.topics[token] = topic;
        visit.totals.move(own, topic);
        renew(own, totals[own]);
        ++drawn.changed;
      }
      renew(topic, totals[topic]);
    }
    row_.take_up(visit.slice, runs[i].place);
  }
  return drawn;
}

}  // namespace shoal::learn::topic

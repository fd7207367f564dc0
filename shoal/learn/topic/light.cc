#include "shoal/learn/topic/light.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <numeric>

namespace shoal::learn::topic {

class Light::Bits {  // of one token's chain
 public:
  Bits(std::uint64_t key, std::uint32_t token) : key_(random_bits(key, token)) {}
  std::uint64_t next() { return random_bits(key_, number_++); }

 private:
  const std::uint64_t key_;
  std::uint64_t number_ = 0;
};

std::size_t Light::memory() const {
  return order_.memory() + row_.memory() + alpha_.memory() + beta_.memory() + word_.memory() +
         (inverse_.size() + q_.size() + weights_.capacity()) * sizeof(double);
}

Drawn Light::begin_round(const Round& round) {
  if (round.number_of_block != of_block_) order_ = DocumentOrder(round.block);
  of_block_ = round.number_of_block;
  return {};
}

void Light::begin(const Visit& visit) {
  const auto totals = visit.totals.counts();
  for (Topic topic = 0; topic < inverse_.size(); ++topic) inverse_[topic] = 1 / (static_cast<double>(totals[topic]) + visit.beta_sum);
  alpha_.build(visit.prior.alpha);
  alpha_sum_ = visit.prior.alpha_sum();
  beta_.build(inverse_);
  beta_mass_ = visit.prior.beta * std::accumulate(inverse_.begin(), inverse_.end(), 0.0);
  for (Topic topic = 0; topic < q_.size(); ++topic) q_[topic] = beta_mass_ * beta_.probability(topic);
}

void Light::lay_table(std::span<const TopicCount> row, double beta) {
  dense_ = 2 * row.size() > q_.size();
  weights_.clear();
  bins_.clear();
  if (dense_) {
    for (Topic topic = 0; topic < q_.size(); ++topic) weights_.push_back((row_[topic] + beta) * inverse_[topic]);
  } else {
    for (const auto& [topic, count] : row) {
      bins_.push_back(topic);
      weights_.push_back(count * inverse_[topic]);
    }
  }
  word_.build(weights_);
  row_mass_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (std::uint32_t i = 0; i < weights_.size(); ++i) {
    if (dense_) {
      q_[i] = row_mass_ * word_.probability(i);
    } else {
      q_[bins_[i]] += row_mass_ * word_.probability(i);
    }
  }
}

void Light::clear_table() {
  const auto clear = [&](Topic topic) { q_[topic] = beta_mass_ * beta_.probability(topic); };
  if (dense_) {
    for (Topic topic = 0; topic < q_.size(); ++topic) clear(topic);
  } else {
    std::ranges::for_each(bins_, clear);
  }
}

// own_q: q_w of the token's topic without the token.
Topic Light::from_word(Topic own, double own_q, Bits& bits) const {
  constexpr int most = 8;
  for (int i = 0; i < most; ++i) {
    Topic topic;
    if (dense_) {
      topic = word_.draw(bits.next());
    } else {
      const bool of_row = unit(bits.next()) * (row_mass_ + beta_mass_) < row_mass_;
      topic = of_row ? bins_[word_.draw(bits.next())] : beta_.draw(bits.next());
    }
    if (topic != own || unit(bits.next()) * q_[own] < own_q) return topic;
  }
  // The table is almost all the token's own: through all topics, from the same distribution.
  const double mass = std::accumulate(q_.begin(), q_.end(), 0.0) - q_[own] + own_q;
  double u = unit(bits.next()) * mass;
  for (Topic topic = 0; topic < q_.size(); ++topic) {
    if ((u -= topic == own ? own_q : q_[topic]) < 0) return topic;
  }
  return own;
}

// own_position: among the document's tokens.
Topic Light::from_document(const Block& block, std::span<const std::uint32_t> tokens, std::uint32_t own_position, Bits& bits) const {
  const auto others = static_cast<double>(tokens.size() - 1);
  const double u = unit(bits.next()) * (others + alpha_sum_);
  if (u >= others) return alpha_.draw(bits.next());
  const auto position = static_cast<std::uint32_t>(u);
  return block.topics[tokens[position + (position >= own_position)]];
}

Drawn Light::sample(const Visit& visit) {
  constexpr std::uint32_t ahead = 16;  // tokens between asking for a table and reading it
  begin(visit);
  Drawn drawn;
  Block& block = visit.block;
  const auto totals = visit.totals.counts();
  const auto runs = block.runs_of(visit.number);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    const auto row = visit.slice.row(runs[i].place);
    row_.lay_out(row);
    lay_table(row, visit.prior.beta);
    for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token) {
      hwy::Prefetch(block.tables.data() + std::size_t{block.lines[std::min(token + ahead, block.tokens() - 1)]} * kLine);
      const Topic own = block.topics[token];
      const std::uint32_t line = block.lines[token], number = order_.document_of(line);
      const auto tokens = order_.tokens_of(number);
      const std::uint32_t position = block.positions[token] - order_.begin(number);
      DocumentCounts document(block, line);
      // The row's part of q_w loses the token, and the topic's total does.
      const double own_q = std::clamp((q_[own] - inverse_[own]) / (1 - inverse_[own]), 0.0, q_[own]);
      const auto term = [&](Topic topic) -> Term {
        const double self = topic == own;
        return {topic, document.of(topic) - self + visit.prior.alpha[topic], row_[topic] - self + visit.prior.beta,
                static_cast<double>(totals[topic]) - self + visit.beta_sum, topic == own ? own_q : q_[topic]};
      };
      Bits bits(visit.key, token);
      Term at = term(own);
      for (unsigned pair = 0; pair < pairs_; ++pair) {
        if (const Topic topic = from_word(own, own_q, bits); topic != at.topic) {
          const Term to = term(topic);
          if (unit(bits.next()) * (at.document * at.word * to.total * to.q) < to.document * to.word * at.total * at.q) at = to;
        }
        if (const Topic topic = from_document(block, tokens, position, bits); topic != at.topic) {
          const Term to = term(topic);
          if (unit(bits.next()) * (at.word * to.total) < to.word * at.total) at = to;
        }
      }
      ++drawn.tokens;
      if (at.topic == own) continue;
      document.remove(own);
      document.add(at.topic);
      row_.remove(own);
      row_.add(at.topic);
      visit.totals.move(own, at.topic);
      block.topics[token] = at.topic;
      ++drawn.changed;
    }
    clear_table();
    row_.take_up(visit.slice, runs[i].place);
  }
  return drawn;
}

}  // namespace shoal::learn::topic

#include "shoal/learn/topic/warp.h"

#include <algorithm>

namespace shoal::learn::topic {

std::size_t Warp::memory() const {
  return order_.memory() + row_.memory() + alpha_.memory() + word_.memory() + (totals_.size() + weights_.capacity()) * sizeof(double) +
         (document_.size() + of_document_.capacity() + counted_.size() + proposals_.size()) * sizeof(std::uint32_t);
}

void Warp::freeze(const Round& round) {
  const auto totals = round.totals.counts();
  for (Topic topic = 0; topic < totals_.size(); ++topic) totals_[topic] = static_cast<double>(totals[topic]) + round.beta_sum;
}

Drawn Warp::begin_round(const Round& round) {
  Drawn drawn;
  Block& block = round.block;
  const std::vector<double>& alpha = round.prior.alpha;
  const double alpha_sum = round.prior.alpha_sum();
  counted_ = block.topics;
  alpha_.build(alpha);
  freeze(round);
  for (std::uint32_t d = 0; d < block.documents(); ++d) {
    const auto tokens = order_.tokens_of(d);
    DocumentCounts counts(block, block.first_line[d]);
    for (std::uint32_t i = 0; i < counts.entries(); ++i) document_[counts[i].topic] += counts[i].count;
    of_document_.clear();
    for (const std::uint32_t token : tokens) {
      const Topic own = block.topics[token];
      Topic at = own;
      const auto term = [&](Topic topic) { return (document_[topic] - (topic == own) + alpha[topic]) / (totals_[topic] - (topic == own)); };
      for (unsigned step = 0; proposed_ && step < steps_; ++step) {
        const std::size_t proposal = std::size_t{token} * steps_ + step;
        if (const Topic to = proposals_[proposal]; to != at && unit(random_bits(round.key, 3 * proposal)) * term(at) < term(to)) at = to;
      }
      of_document_.push_back(at);
    }
    for (std::uint32_t i = 0; i < counts.entries(); ++i) document_[counts[i].topic] = 0;
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
      const Topic from = block.topics[tokens[i]], to = of_document_[i];
      if (from == to) continue;
      counts.remove(from);
      counts.add(to);
      round.totals.move(from, to);
      block.topics[tokens[i]] = to;
      ++drawn.changed;
    }
    const auto others = static_cast<double>(tokens.size()) - 1;
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
      for (unsigned step = 0; step < steps_; ++step) {
        const std::size_t proposal = std::size_t{tokens[i]} * steps_ + step;
        const double u = unit(random_bits(round.key, 3 * proposal + 1)) * (others + alpha_sum);
        if (u < others) {
          const auto position = static_cast<std::uint32_t>(u);
          proposals_[proposal] = of_document_[position + (position >= i)];
        } else {
          proposals_[proposal] = alpha_.draw(random_bits(round.key, 3 * proposal + 2));
        }
      }
    }
  }
  proposed_ = true;
  freeze(round);
  return drawn;
}

Drawn Warp::sample(const Visit& visit) {
  Drawn drawn;
  Block& block = visit.block;
  const double beta = visit.prior.beta;
  const auto runs = block.runs_of(visit.number);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    const std::uint32_t begin = runs[i].begin, end = runs[i + 1].begin;
    row_.lay_out(visit.slice.row(runs[i].place));
    const auto count_anew = [&](std::uint32_t token) {
      row_.remove(counted_[token]);
      row_.add(block.topics[token]);
      counted_[token] = block.topics[token];
    };
    for (std::uint32_t token = begin; token < end; ++token) count_anew(token);
    for (std::uint32_t token = begin; token < end; ++token) {
      const Topic own = block.topics[token];
      const auto term = [&](Topic topic) { return (row_[topic] - (topic == own) + beta) / (totals_[topic] - (topic == own)); };
      for (unsigned step = 0; step < steps_; ++step) {
        const std::size_t proposal = std::size_t{token} * steps_ + step;
        Topic& at = block.topics[token];
        if (const Topic to = proposals_[proposal]; to != at && unit(random_bits(visit.key, 4 * proposal)) * term(at) < term(to)) at = to;
      }
    }
    for (std::uint32_t token = begin; token < end; ++token) {
      const Topic from = counted_[token], to = block.topics[token];
      if (from == to) continue;
      DocumentCounts document(block, block.lines[token]);
      document.remove(from);
      document.add(to);
      visit.totals.move(from, to);
      count_anew(token);
      ++drawn.changed;
    }
    propose_from_row(visit, begin, end);
    drawn.tokens += end - begin;
    row_.take_up(visit.slice, runs[i].place);
  }
  return drawn;
}

// Tokens `begin` to `end` - 1 of the word whose row is laid out.
void Warp::propose_from_row(const Visit& visit, std::uint32_t begin, std::uint32_t end) {
  const auto listed = row_.listed();
  weights_.clear();
  double tokens = 0;
  for (const Topic topic : listed) {
    weights_.push_back(row_[topic]);
    tokens += row_[topic];
  }
  word_.build(weights_);
  const auto topics = static_cast<double>(totals_.size());
  for (std::uint32_t token = begin; token < end; ++token) {
    const Topic own = visit.block.topics[token];
    for (unsigned step = 0; step < steps_; ++step) {
      const std::size_t proposal = std::size_t{token} * steps_ + step;
      const double others = tokens - 1, u = unit(random_bits(visit.key, 4 * proposal + 1)) * (others + topics * visit.prior.beta);
      if (u >= others) {
        proposals_[proposal] = static_cast<Topic>((random_bits(visit.key, 4 * proposal + 2) >> 32) * totals_.size() >> 32);
        continue;
      }
      // The token itself is one of `tokens`, so that at least every second draw is another one.
      Topic topic = own;
      for (std::uint64_t bits = random_bits(visit.key, 4 * proposal + 3);; bits = mixed(bits + 1)) {
        topic = listed[word_.draw(bits)];
        if (topic != own || unit(mixed(bits)) * row_[own] >= 1) break;
      }
      proposals_[proposal] = topic;
    }
  }
}

}  // namespace shoal::learn::topic

#include "shoal/learn/topic/fold_in.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::topic {
namespace {

constexpr unsigned kFirstPasses = 3;      // over all topics, before those that change are chosen
constexpr double kChanging = 0.05;        // expected tokens of a topic that may still change much
constexpr std::size_t kMostActive = 64;
constexpr std::size_t kLanes = 8;         // columns come in this many, so that loops over them need no rest
constexpr std::uint16_t kNone = 0xFFFF;

}  // namespace

FoldIn::FoldIn(const Phi& phi, FoldInOptions options)
    : phi_(phi), options_(options), excess_(phi.topics()), gained_(phi.topics()), expected_(phi.topics()), column_(phi.topics(), kNone) {}

void FoldIn::operator()(std::span<const std::uint32_t> words, Mixture& to) {
  begin(words, to);
  if (to.tokens > 0) {
    const auto tokens = static_cast<double>(to.tokens);
    others_ = tokens / phi_.alpha_sum();
    first_pass();
    if (options_.thorough) {
      for (unsigned pass = 1; pass < options_.passes; ++pass) whole_pass();
    } else {
      for (unsigned pass = 1; pass < std::min(kFirstPasses, options_.passes); ++pass) whole_pass();
      settle(tokens);
      whole_pass();
    }
  }
  finish(to);
}

void FoldIn::begin(std::span<const std::uint32_t> words, Mixture& to) {
  sorted_.clear();
  for (const std::uint32_t word : words) {
    if (phi_.knows(word)) sorted_.push_back(word);
  }
  std::sort(sorted_.begin(), sorted_.end());
  to.tokens = sorted_.size();
  to.unknown = words.size() - sorted_.size();
  words_.clear();
  for (const std::uint32_t word : sorted_) {
    if (words_.empty() || words_.back().word != word) words_.push_back({word, 0, 0});
    words_.back().count += 1;
  }
}

// All of N_k is in `others_` yet, so the rows name what is touched.
void FoldIn::first_pass() {
  double responsible = 0;  // sum over w of n_w / denominator_w
  for (const Word& w : words_) {
    const double share = w.count / ((1 + others_) * phi_.prior(w.word));
    responsible += share;
    const auto factor = static_cast<float>(share);
    for (const auto [topic, rise] : phi_[w.word]) {
      if (gained_[topic] == 0) {
        touched_.push_back(topic);
        expected_[topic] = others_ * phi_.alpha()[topic];
      }
      gained_[topic] += factor * rise;
    }
  }
  take_up(responsible);
}

void FoldIn::whole_pass() {
  double responsible = 0;
  for (const Word& w : words_) {
    const std::span<const TopicRise> row = phi_[w.word];
    float above = 0;
    for (const auto [topic, rise] : row) above += excess_[topic] * rise;
    const double share = w.count / ((1 + others_) * phi_.prior(w.word) + floor_ + above);
    responsible += share;
    const auto factor = static_cast<float>(share);
    for (const auto [topic, rise] : row) gained_[topic] += factor * rise;
  }
  take_up(responsible);
}

void FoldIn::take_up(double responsible) {
  double alpha = phi_.alpha_sum(), prior_floor = phi_.prior_floor();
  for (const Topic k : touched_) {
    const double before = expected_[k], alpha_k = phi_.alpha()[k], floor_k = phi_.floor()[k];
    expected_[k] = (before + alpha_k) * (gained_[k] + responsible * floor_k);
    gained_[k] = 0;
    alpha -= alpha_k;
    prior_floor -= alpha_k * floor_k;
  }
  others_ = touched_.size() < phi_.topics() ? std::max(0.0, (1 + others_) * responsible * prior_floor / alpha) : 0;
  floor_ = 0;
  for (const Topic k : touched_) {
    const double excess = expected_[k] - others_ * phi_.alpha()[k];
    excess_[k] = static_cast<float>(excess);
    floor_ += excess * phi_.floor()[k];
  }
}

void FoldIn::choose_active() {
  active_.clear();
  for (const Topic k : touched_) {
    if (expected_[k] >= kChanging) active_.push_back(k);
  }
  if (active_.size() > kMostActive) {
    std::nth_element(active_.begin(), active_.begin() + kMostActive, active_.end(), [this](Topic a, Topic b) {
      return expected_[a] != expected_[b] ? expected_[a] > expected_[b] : a < b;
    });
    active_.resize(kMostActive);
  }
  const std::size_t columns = (active_.size() + kLanes - 1) / kLanes * kLanes;
  held_.assign(columns, 0);
  prior_.assign(columns, 0);
  double active_floor = 0;
  for (std::size_t m = 0; m < active_.size(); ++m) {
    const Topic k = active_[m];
    column_[k] = static_cast<std::uint16_t>(m);
    prior_[m] = static_cast<float>(phi_.alpha()[k]);
    held_[m] = static_cast<float>(expected_[k]) + prior_[m];
    active_floor += excess_[k] * phi_.floor()[k];
  }
  matrix_.assign(words_.size() * columns, 0);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    float* const row = matrix_.data() + i * columns;
    double above = 0, active_prior = 0;
    for (std::size_t m = 0; m < active_.size(); ++m) row[m] = static_cast<float>(phi_.floor()[active_[m]]);
    for (const auto [topic, rise] : phi_[words_[i].word]) {
      if (column_[topic] != kNone) {
        row[column_[topic]] += rise;
      } else {
        above += excess_[topic] * rise;
      }
    }
    for (std::size_t m = 0; m < active_.size(); ++m) active_prior += prior_[m] * row[m];
    words_[i].taken_out = std::max(0.0, (1 + others_) * (phi_.prior(words_[i].word) - active_prior) + floor_ - active_floor + above);
  }
  for (const Topic k : active_) column_[k] = kNone;
}

// Returns how many expected tokens it moved.
double FoldIn::active_pass() {
  const std::size_t columns = held_.size();
  gain_.assign(columns, 0);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const float* const row = matrix_.data() + i * columns;
    float lanes[kLanes] = {};
    for (std::size_t m = 0; m < columns; m += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += held_[m + lane] * row[m + lane];
    }
    float sum = static_cast<float>(words_[i].taken_out);
    for (const float lane : lanes) sum += lane;
    const float factor = words_[i].count / sum;
    for (std::size_t m = 0; m < columns; ++m) gain_[m] += factor * row[m];
  }
  float moved = 0;
  for (std::size_t m = 0; m < columns; ++m) {
    const float next = held_[m] * gain_[m] + prior_[m];
    moved += std::abs(next - held_[m]);
    held_[m] = next;
  }
  return moved;
}

void FoldIn::settle(double tokens) {
  choose_active();
  for (unsigned pass = 0; pass < options_.passes && active_pass() >= options_.settled * tokens; ++pass) {}
  for (std::size_t m = 0; m < active_.size(); ++m) {
    const Topic k = active_[m];
    floor_ -= excess_[k] * phi_.floor()[k];
    expected_[k] = held_[m] - prior_[m];
    excess_[k] = static_cast<float>(expected_[k] - others_ * phi_.alpha()[k]);
    floor_ += excess_[k] * phi_.floor()[k];
  }
}

void FoldIn::finish(Mixture& to) {
  const double whole = static_cast<double>(to.tokens) + phi_.alpha_sum();
  to.topics.clear();
  for (const Topic k : touched_) {
    to.topics.push_back({k, (expected_[k] + phi_.alpha()[k]) / whole});
    excess_[k] = 0;
    expected_[k] = 0;
  }
  to.others = (1 + others_) / whole;
  touched_.clear();
  others_ = floor_ = 0;
}

}  // namespace shoal::learn::topic

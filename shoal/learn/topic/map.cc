#include "shoal/learn/topic/map.h"

#include <algorithm>
#include <cmath>

#include "shoal/learn/topic/top_words.h"

namespace shoal::learn::topic {
namespace {

constexpr std::size_t kWords = 1000;
constexpr int kTurns = 300;  // of the subspace iteration, at most
constexpr double kStill = 1e-9;

struct Share {
  std::uint32_t topic;  // of those that are mapped
  double p;
};

double product(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Length 1, at right angles to `first` if there is one. False for what is nearly nothing then.
bool straighten(std::vector<double>& vector, const std::vector<double>* first) {
  if (first != nullptr) {
    const double along = product(vector, *first);
    for (std::size_t i = 0; i < vector.size(); ++i) vector[i] -= along * (*first)[i];
  }
  const double length = std::sqrt(product(vector, vector));
  if (length < 1e-12) return false;
  for (double& value : vector) value /= length;
  return true;
}

}  // namespace

// JSD(p, q) = ln 2 + 1/2 sum over shared words of [p ln(p / (p + q)) + q ln(q / (p + q))], where p and q each sum to 1.
std::vector<double> divergences(const Model& model, std::span<const Topic> topics) {
  const std::size_t n = topics.size();
  std::vector<std::uint32_t> place(model.topics());
  for (std::size_t i = 0; i < n; ++i) place[topics[i]] = static_cast<std::uint32_t>(i);
  std::vector<Topic> ascending(topics.begin(), topics.end());
  std::sort(ascending.begin(), ascending.end());
  const auto top = top_words(model, kWords, ascending);
  std::vector<std::vector<Share>> by_word(model.words());
  for (std::size_t i = 0; i < n; ++i) {
    double tokens = 0;
    for (const WordCount& here : top[i]) tokens += here.count;
    for (const WordCount& here : top[i]) by_word[here.word].push_back({place[ascending[i]], here.count / tokens});
  }
  std::vector<double> shared(n * n);
  for (const auto& row : by_word) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double p = row[i].p, q = row[j].p;
        shared[row[i].topic * n + row[j].topic] += (p * std::log(p / (p + q)) + q * std::log(q / (p + q))) / 2;
      }
    }
  }
  std::vector<double> squares(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) squares[i * n + j] = squares[j * n + i] = std::max(0.0, M_LN2 + shared[i * n + j] + shared[j * n + i]);
  }
  return squares;
}

std::vector<Point> scaled(std::span<const double> squares, std::size_t count) {
  std::vector<double> means(count), inner(count * count);
  double mean = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) means[i] += squares[i * count + j] / static_cast<double>(count);
    mean += means[i] / static_cast<double>(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) inner[i * count + j] = (means[i] + means[j] - mean - squares[i * count + j]) / 2;
  }
  // The two largest eigenvalues by subspace iteration, from vectors that nothing is likely to be at right angles to.
  std::vector<std::vector<double>> axes(2, std::vector<double>(count));
  for (std::size_t i = 0; i < count; ++i) {
    axes[0][i] = std::sin(1.0 + static_cast<double>(i));
    axes[1][i] = std::cos(2.0 + 3.0 * static_cast<double>(i));
  }
  double values[2] = {};
  bool there[2] = {straighten(axes[0], nullptr), straighten(axes[1], &axes[0])};
  for (int turn = 0; turn < kTurns; ++turn) {
    double moved = 0;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      if (!there[axis]) continue;
      std::vector<double> next(count);
      for (std::size_t i = 0; i < count; ++i) next[i] = product(std::span(inner).subspan(i * count, count), axes[axis]);
      const double value = product(next, axes[axis]);
      there[axis] = straighten(next, axis == 0 ? nullptr : &axes[0]) && value > 0;
      moved += std::abs(value - values[axis]);
      values[axis] = there[axis] ? value : 0;
      axes[axis] = std::move(next);
    }
    if (moved <= kStill * values[0]) break;
  }
  std::vector<Point> points(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t axis = 0; axis < 2; ++axis) points[i][axis] = there[axis] ? axes[axis][i] * std::sqrt(values[axis]) : 0;
  }
  return points;
}

}  // namespace shoal::learn::topic

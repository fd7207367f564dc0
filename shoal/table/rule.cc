#include "shoal/table/rule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::table {
namespace {

constexpr const char* kRuleNames[] = {"sum", "sgd", "adagrad", "adam", "adaptive-revision"};

std::string shortest(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

bool in_range(const Rule& rule) {
  const auto share = [](double value) { return value >= 0 && value < 1; };
  return std::isfinite(rule.rate) && rule.rate >= 0 && share(rule.momentum) && share(rule.second) && rule.epsilon >= 0 && std::isfinite(rule.epsilon);
}

}  // namespace

Rule rule_from(const std::string& text) {
  std::vector<double> numbers;
  const auto colon = std::min(text.find(':'), text.size());
  const std::string kind = text.substr(0, colon);
  bool read = true;
  for (std::size_t at = colon; at < text.size() && read;) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, wrong] = std::from_chars(text.data() + at + 1, end, number);
    read = wrong == std::errc{} && (stopped == end || *stopped == ':');
    numbers.push_back(number);
    at = static_cast<std::size_t>(stopped - text.data());
  }
  const std::size_t given = numbers.size();
  Rule rule;
  if (kind == "sum") read = read && given == 0;
  else if (kind == "sgd" && (given == 1 || given == 2)) rule = Rule::sgd(numbers[0], given > 1 ? numbers[1] : 0);
  else if (kind == "adagrad" && (given == 1 || given == 2)) rule = given > 1 ? Rule::adagrad(numbers[0], numbers[1]) : Rule::adagrad(numbers[0]);
  else if (kind == "adaptive-revision" && given == 1) rule = Rule::adaptive_revision(numbers[0]);
  else if (kind == "adaptive-revision" && given == 2) rule = Rule::adaptive_revision(numbers[0], numbers[1]);
  else if (kind == "adam" && given == 1) rule = Rule::adam(numbers[0]);
  else if (kind == "adam" && given == 4) rule = Rule::adam(numbers[0], numbers[1], numbers[2], numbers[3]);
  else read = false;
  if (read && in_range(rule)) return rule;
  throw Error(Code::invalid_argument, "no rule is called \"" + text + "\"", "rule",
              "one of sum, sgd:RATE[:MOMENTUM], adagrad:RATE[:EPSILON], adam:RATE[:BETA1:BETA2:EPSILON] and adaptive-revision:RATE[:EPSILON], as in sgd:0.1:0.9");
}

std::string name(const Rule& rule) {
  std::string text = kRuleNames[static_cast<int>(rule.kind)];
  if (rule.kind == Rule::Kind::sum) return text;
  text += ':' + shortest(rule.rate);
  if (rule.kind == Rule::Kind::sgd || rule.kind == Rule::Kind::adam) text += ':' + shortest(rule.momentum);
  if (rule.kind == Rule::Kind::adam) text += ':' + shortest(rule.second);
  if (rule.kind != Rule::Kind::sgd) text += ':' + shortest(rule.epsilon);
  return text;
}

bool same_kind(const Rule& one, const Rule& other) { return one.kind == other.kind && state_width(one, 1) == state_width(other, 1); }

double reach(const Rule& rule, double gradient) {
  switch (rule.kind) {
    case Rule::Kind::sum: return gradient;
    case Rule::Kind::sgd: return rule.rate * gradient / (1 - rule.momentum);
    case Rule::Kind::adagrad:
    case Rule::Kind::adaptive_revision: return gradient == 0 ? 0 : rule.rate;
    case Rule::Kind::adam: return rule.rate * std::max(1.0, (1 - rule.momentum) / std::sqrt(1 - rule.second));  // section 2.1 of its paper
  }
  return gradient;
}

std::size_t state_width(const Rule& rule, std::size_t width) {
  switch (rule.kind) {
    case Rule::Kind::sum: return 0;
    case Rule::Kind::sgd: return rule.momentum == 0 ? 0 : width;
    case Rule::Kind::adagrad: return width;
    case Rule::Kind::adaptive_revision: return 3 * width;  // the sum of gradients; of their revised squares, and the greatest that it was
    case Rule::Kind::adam: return 2 * width + 1;  // both moments, and how many steps this row has taken
  }
  return 0;
}

template <class T>
void step(const Rule& rule, std::span<T> row, std::span<T> state, std::span<const T> gradient, double divisor, std::span<const T> sums) {
  const std::size_t width = row.size();
  const T rate = static_cast<T>(rule.rate), momentum = static_cast<T>(rule.momentum), second = static_cast<T>(rule.second);
  const T epsilon = static_cast<T>(rule.epsilon), by = static_cast<T>(divisor);
  if (rule.kind == Rule::Kind::sgd && rule.momentum == 0) {
    for (std::size_t i = 0; i < width; ++i) row[i] -= rate * (gradient[i] / by);
  } else if (rule.kind == Rule::Kind::sgd) {
    for (std::size_t i = 0; i < width; ++i) {
      state[i] = momentum * state[i] + gradient[i] / by;
      row[i] -= rate * state[i];
    }
  } else if (rule.kind == Rule::Kind::adagrad) {
    for (std::size_t i = 0; i < width; ++i) {
      const T g = gradient[i] / by;
      state[i] += g * g;
      row[i] -= rate * g / (std::sqrt(state[i]) + epsilon);
    }
  } else if (rule.kind == Rule::Kind::adaptive_revision) {  // symbols of the paper; z begins at 0, as Adagrad's sum does
    for (std::size_t i = 0; i < width; ++i) {
      const T g = gradient[i] / by;
      T &g_bar = state[i], &z = state[width + i], &z_max = state[2 * width + i];
      const T g_back = sums.empty() ? T{0} : g_bar - sums[i], before = z_max;
      z += g * g + 2 * g * g_back;
      z_max = std::max(z, z_max);
      row[i] -= rate * g / (std::sqrt(z_max) + epsilon);
      if (before > 0) row[i] += (rate / (std::sqrt(before) + epsilon) - rate / (std::sqrt(z_max) + epsilon)) * g_back;
      g_bar += g;
    }
  } else if (rule.kind == Rule::Kind::adam) {
    T& steps = state[2 * width];
    steps += 1;
    const T first_bias = static_cast<T>(1 - std::pow(rule.momentum, steps)), second_bias = static_cast<T>(1 - std::pow(rule.second, steps));
    for (std::size_t i = 0; i < width; ++i) {
      const T g = gradient[i] / by;
      T& m = state[i];
      T& v = state[width + i];
      m = momentum * m + (1 - momentum) * g;
      v = second * v + (1 - second) * g * g;
      row[i] -= rate / first_bias * m / (std::sqrt(v / second_bias) + epsilon);
    }
  }
}

template void step<float>(const Rule&, std::span<float>, std::span<float>, std::span<const float>, double, std::span<const float>);
template void step<double>(const Rule&, std::span<double>, std::span<double>, std::span<const double>, double, std::span<const double>);

}  // namespace shoal::table

// How large what was added is, by row: for policies that bound it. Values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "shoal/table/row_map.h"
#include "shoal/table/rule.h"

namespace shoal::table {

// The largest of |values[i]|.
template <class T>
double max_norm(std::span<const T> values) {
  double largest = 0;
  for (const T value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

template <class T>
double root_mean_square(std::span<const T> values) {
  double squares = 0;
  for (const T value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

struct Amount {
  Key key;
  double magnitude;
};

// Of rows that are added one below the other: how far each moves an element of its row at most.
template <class T>
void append_amounts(const Rule& rule, std::span<const Key> keys, std::span<const T> values, std::vector<Amount>& into) {
  const std::size_t width = keys.empty() ? 0 : values.size() / keys.size();
  for (std::size_t i = 0; i < keys.size(); ++i) into.push_back({keys[i], reach(rule, max_norm(values.subspan(i * width, width)))});
}

// Sums of magnitudes of increments, by row. A row's sum bounds how much any of its elements differs between who has all of these
// increments and who has some: that of the increments themselves would not, for they may cancel.
class Sums {
 public:
  void add(const Amount& amount) {
    Sum& sum = sums_[amount.key];
    sum.magnitude += amount.magnitude;
    ++sum.increments;
  }
  void remove(const Amount& amount) {
    const auto sum = sums_.find(amount.key);
    sum->second.magnitude -= amount.magnitude;
    if (--sum->second.increments == 0) sums_.erase(sum);  // exactly nothing, whatever was rounded
  }
  // Whether the row's sum stays within `bound`, or has nothing yet: so that one increment, however large, always fits some time.
  bool fits(const Amount& amount, double bound) const {
    const auto sum = sums_.find(amount.key);
    return sum == sums_.end() || sum->second.magnitude + amount.magnitude <= bound;
  }

 private:
  struct Sum {
    double magnitude = 0;
    std::uint64_t increments = 0;
  };
  std::unordered_map<Key, Sum> sums_;
};

}  // namespace shoal::table

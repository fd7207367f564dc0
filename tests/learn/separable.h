// Rows of classes that can be told apart, and the oracle of linear models' losses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "shoal/core/seed.h"
#include "shoal/learn/labelled_rows.h"

namespace shoal::learn {

// Rows of 12 columns, about half of them zero; the class is that of the largest of so many random directions.
inline LabelledRows separable(std::uint32_t member, std::uint32_t members, std::uint32_t classes, std::uint32_t count = 600) {
  constexpr std::uint32_t width = 12;
  LabelledRows rows;
  rows.member = member;
  rows.members = members;
  rows.columns = width;
  for (std::uint32_t j = 0; j < classes; ++j) rows.classes.push_back(j);
  for (std::uint32_t i = 0, kept = 0; kept < count; ++i) {
    std::vector<std::uint32_t> columns;
    std::vector<float> values;
    std::vector<double> scores(classes);
    for (std::uint32_t k = 0; k < width; ++k) {
      if (uniform(3, i, k, 0) < 0.5) continue;
      columns.push_back(k);
      values.push_back(static_cast<float>(2 * uniform(3, i, k, 1) - 1));
      for (std::uint32_t j = 0; j < classes; ++j) scores[j] += values.back() * (2 * uniform(3, j, k, 2) - 1);
    }
    const auto most = std::max_element(scores.begin(), scores.end());
    auto sorted = scores;
    std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(), std::greater<>());
    if (*most - sorted[1] < 0.3) continue;  // a margin
    const data::SparseRow row{static_cast<double>(most - scores.begin()), columns, values};
    const data::Share share{member, members};
    if (kept++ % 5 == 0) {
      if (share.holds(rows.held_out++)) rows.own_held_out.append(row);
      continue;
    }
    rows.first.append(row);
    if (share.holds(rows.count)) {
      rows.own.append(row);
      rows.numbers.push_back(rows.count);
    }
    ++rows.count;
  }
  rows.own.width = rows.own_held_out.width = rows.first.width = width;
  return rows;
}

// The mean loss of the rows at these weights, without the penalty: one thread and a loop, in doubles.
inline double mean_loss(const data::SparseSlice& rows, const std::vector<double>& weights, const std::vector<double>& intercept, std::size_t classes) {
  const std::size_t width = intercept.size();
  double loss = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> scores(intercept);
    for (std::size_t k = 0; k < rows[i].columns.size(); ++k) {
      for (std::size_t j = 0; j < width; ++j) scores[j] += rows[i].values[k] * weights[rows[i].columns[k] * width + j];
    }
    if (width == 1) scores.insert(scores.begin(), 0.0);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    loss += std::log(sum) - scores[static_cast<std::size_t>(rows[i].label)];
  }
  EXPECT_EQ(classes, width == 1 ? 2 : width);
  return loss / static_cast<double>(rows.size());
}

}  // namespace shoal::learn

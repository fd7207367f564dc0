// What a member of a peer computes where it learns as `shoal linear train --l2 0` does: the same minibatches and the same steps, over rows of columns that the peer shares.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shoal/learn/linear.h"

namespace shoal::bench {

class LinearClocks {
 public:
  // batch: rows of all members in a clock.
  LinearClocks(const std::string& file, std::size_t batch, std::uint32_t member, std::uint32_t members)
      : batch_(batch), rows_(learn::read_labelled_rows({.files = {file}, .test_files = {}}, member, members)), classes_(rows_.classes.size()),
        smoothness_(learn::smoothness(rows_.first, classes_, batch)), touched_(rows_.columns), scores_(width()), likely_(classes_) {}

  std::size_t width() const { return learn::width_for(classes_); }  // of a row
  std::size_t rows() const { return rows_.columns + 1; }            // the last is the intercept
  std::size_t own() const { return rows_.own.size(); }              // examples
  void begin_epoch(unsigned epoch) { dealt_ = learn::deal(rows_, batch_, 1, epoch + 1); }
  std::size_t clocks() const { return dealt_.size(); }              // of the epoch
  // The rows that this clock reads and adds to.
  std::span<const table::Key> keys(std::size_t clock) {
    touched_.collect(rows_.own, dealt_[clock]);
    return touched_.keys();
  }
  // changes: what the clock adds to the rows of keys(), whose values these are. Returns the sum of the losses before it.
  double learn(unsigned epoch, std::size_t clock, std::span<const float> values, std::span<float> changes) {
    const double part = static_cast<double>(clock) / static_cast<double>(clocks()), curvature = classes_ == 2 ? 0.25 : 0.5;
    const double scaled = learn::StepSize{2, true}.at(epoch + part) / smoothness_ / static_cast<double>(std::min(batch_, rows_.count - clock * batch_));
    const std::size_t ones = touched_.ones();
    double loss = 0;
    std::ranges::fill(changes, 0.0F);
    for (const std::uint32_t number : dealt_[clock]) {
      const data::SparseRow row = rows_.own[number];
      for (std::size_t j = 0; j < width(); ++j) scores_[j] = values[ones * width() + j];
      for (std::size_t k = 0; k < row.columns.size(); ++k) {
        const float* column = &values[touched_.place(row.columns[k]) * width()];
        for (std::size_t j = 0; j < width(); ++j) scores_[j] += double{row.values[k]} * column[j];
      }
      learn::softmax(scores_, likely_);
      const auto label = static_cast<std::size_t>(row.label);
      loss -= std::log(std::max(likely_[label], 1e-300));
      likely_[label] -= 1;
      for (std::size_t j = 0; j < width(); ++j) scores_[j] = -scaled * likely_[classes_ - width() + j];
      for (std::size_t k = 0; k < row.columns.size(); ++k) {
        float* column = &changes[touched_.place(row.columns[k]) * width()];
        for (std::size_t j = 0; j < width(); ++j) column[j] += row.values[k] * static_cast<float>(scores_[j]);
      }
      for (std::size_t j = 0; j < width(); ++j) changes[ones * width() + j] += static_cast<float>(scores_[j] * smoothness_ / curvature);
    }
    return loss;
  }

 private:
  const std::size_t batch_;
  const learn::LabelledRows rows_;
  const std::size_t classes_;
  const double smoothness_;
  learn::TouchedColumns touched_;
  std::vector<double> scores_, likely_;
  std::vector<std::vector<std::uint32_t>> dealt_;  // by clock: numbers of own examples
};

}  // namespace shoal::bench

// Views that live for a while beside whatever goes on: when each ends, its rows are what they were when it began.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "shoal/table/view.h"

namespace shoal::table {

template <class T>
class LivingViews {
 public:
  // Gives its values; if there are several then, any of them ends.
  void begin(View<T> view, std::span<T> values) {
    for (std::size_t i = 0; i < view.size(); ++i) set<T>(values.subspan(i * view.width(), view.width()), view[i]);
    living_.push_back({std::move(view), {values.begin(), values.end()}});
    constexpr std::size_t most = 6;
    if (living_.size() > most) end(draw_() % living_.size());
  }
  void end_all() {
    while (!living_.empty()) end(living_.size() - 1);
  }

 private:
  struct Living {
    View<T> view;
    std::vector<T> values;
  };
  void end(std::size_t number) {
    const auto& [view, values] = living_[number];
    for (std::size_t i = 0; i < view.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(view[i], std::span(values).subspan(i * view.width(), view.width()))) << "a view has changed";
    }
    living_.erase(living_.begin() + static_cast<std::ptrdiff_t>(number));
  }

  std::vector<Living> living_;
  std::mt19937_64 draw_;
};

}  // namespace shoal::table

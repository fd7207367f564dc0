// Against std::map, with keys that collide, that are neighbours, and that are extreme.
#include "shoal/table/row_map.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

namespace shoal::table {
namespace {

TEST(RowMap, agrees_with_a_map) {
  for (const std::size_t width : {1u, 3u, 64u, 20000u}) {
    RowMap<std::int64_t> rows(width);
    std::map<Key, std::int64_t> expected;
    std::mt19937_64 random(width);
    const std::size_t steps = width > 1000 ? 300 : 20000;
    for (std::size_t step = 0; step < steps; ++step) {
      Key key = random() % (steps / 2);
      if (step % 5 == 0) key = std::numeric_limits<Key>::max() - key;
      const auto number = rows.insert(key);
      if (!expected.contains(key)) {
        EXPECT_EQ(number + 1, rows.size());
      }
      rows.row(number)[width - 1] += static_cast<std::int64_t>(step);
      expected[key] += static_cast<std::int64_t>(step);
    }
    ASSERT_EQ(rows.size(), expected.size());
    for (const auto& [key, value] : expected) {
      const auto number = rows.find(key);
      ASSERT_NE(number, rows.kNone);
      EXPECT_EQ(rows.keys()[number], key);
      EXPECT_EQ(rows.row(number)[width - 1], value);
      if (width > 1) {
        EXPECT_EQ(rows.row(number)[0], 0);
      }
    }
    EXPECT_EQ(rows.find(steps), rows.kNone);
  }
}

TEST(RowMap, a_row_stays_where_it_is) {
  RowMap<float> rows(5);
  const float* const first = rows.row(rows.insert(0)).data();
  for (Key key = 1; key < 100000; ++key) rows.insert(key);
  EXPECT_EQ(rows.row(rows.find(0)).data(), first);
}

TEST(RowMap, integers_wrap) {
  std::vector<std::int32_t> narrow{std::numeric_limits<std::int32_t>::max()}, wide(100, std::numeric_limits<std::int32_t>::max());
  add<std::int32_t>(narrow, std::vector<std::int32_t>{1});
  add<std::int32_t>(wide, std::vector<std::int32_t>(100, 1));
  EXPECT_EQ(narrow[0], std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wide[99], std::numeric_limits<std::int32_t>::min());
}

}  // namespace
}  // namespace shoal::table

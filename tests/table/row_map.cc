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
      const auto near = static_cast<RowMap<std::int64_t>::Number>(random() % steps);  // wherever one looks first
      const auto number = rows.insert(key, near);
      if (!expected.contains(key)) {
        EXPECT_EQ(number + 1, rows.size());
      }
      rows.row(number)[width - 1] += static_cast<std::int64_t>(step);
      expected[key] += static_cast<std::int64_t>(step);
    }
    ASSERT_EQ(rows.size(), expected.size());
    for (const auto& [key, value] : expected) {
      const auto number = rows.find(key, static_cast<RowMap<std::int64_t>::Number>(random() % steps));
      ASSERT_NE(number, rows.kNone);
      EXPECT_EQ(rows.key(number), key);
      EXPECT_EQ(rows.row(number)[width - 1], value);
      if (width > 1) {
        EXPECT_EQ(rows.row(number)[0], 0);
      }
    }
    EXPECT_EQ(rows.find(steps), rows.kNone);
  }
}

// Goal: rows that are added many at a time are those that would have been added one by one; runs are as long as keys, blocks and what was replaced
// allow. Method: lists of keys that go on where the last one ended, fall back, or repeat themselves, for rows from one to more than a block.
TEST(RowMap, many_at_a_time_are_as_one_by_one) {
  using Rows = RowMap<std::int64_t>;
  for (const std::size_t width : {1u, 5u, 40'000u}) {
    SCOPED_TRACE(width);
    Rows many(width), single(width);
    std::mt19937_64 random(width);
    Key next = 0;
    const int calls = width > 1000 ? 20 : 30;
    for (int call = 0; call < calls; ++call) {
      std::vector<Key> keys(width > 1000 ? 1 + random() % 5 : 1 + random() % 4'000);
      if (random() % 4 == 0) next /= 2;
      for (Key& key : keys) key = next += random() % 50 == 0 ? 0 : 1 + random() % 3;
      std::vector<std::int64_t> values(keys.size() * width);
      for (std::size_t i = 0; i < values.size(); i += std::min<std::size_t>(width, 64)) values[i] = static_cast<std::int64_t>(random() % 1000);
      const auto row = [&](std::size_t i) { return std::span<const std::int64_t>(values).subspan(i * width, width); };
      const std::size_t taken = many.append(keys, values);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i >= taken) many.add(keys[i], Rows::kNone, row(i));
        single.add(keys[i], Rows::kNone, row(i));
      }
      ASSERT_EQ(many.size(), single.size());
      if (call == calls / 2) {
        for (Rows* const rows : {&many, &single}) std::ranges::fill(rows->row(rows->replace(3)), 7);  // it holds anything
      }
      for (Rows::Number number = 0; number < many.size(); ++number) {
        ASSERT_EQ(many.key(number), single.key(number));
        const std::vector<Key> here = {single.key(number), number + 1 < single.size() ? single.key(number + 1) : Key{0}};
        const std::size_t run = many.run(number, here);
        ASSERT_EQ(run == 0, many.find(here[0], number) != number);  // it was replaced
        if (run == 2) {
          ASSERT_EQ(many.rows(number, 2).data() + width, many.row(number + 1).data());
        }
        ASSERT_TRUE(many.find(here[0], number) != number || std::ranges::equal(many.row(number), single.row(number)));
      }
    }
    EXPECT_EQ(many.run(static_cast<Rows::Number>(many.size()), std::vector<Key>{1}), 0u);
  }
}

TEST(RowMap, a_row_stays_where_it_is) {
  RowMap<float> rows(5);
  const float* const first = rows.row(rows.insert(0)).data();
  for (Key key = 1; key < 100000; ++key) rows.insert(key);
  EXPECT_EQ(rows.row(rows.find(0)).data(), first);
}

// Goal: keys that come in order, then one that does not, are found like any others, and those that never came are not.
TEST(RowMap, keys_in_order_and_then_not) {
  RowMap<float> rows(3);
  constexpr Key kCount = 50000;
  for (Key i = 1; i <= kCount; ++i) EXPECT_EQ(rows.insert(2 * i, static_cast<RowMap<float>::Number>(i - 1)), i - 1);
  for (const bool in_order : {true, false}) {
    if (!in_order) {
      EXPECT_EQ(rows.insert(7), kCount);
    }
    for (Key i = 1; i <= kCount; ++i) ASSERT_EQ(rows.find(2 * i), i - 1);
    EXPECT_EQ(rows.insert(2), 0u);
    EXPECT_EQ(rows.find(7), in_order ? rows.kNone : kCount);
    EXPECT_EQ(rows.find(1), rows.kNone);
    EXPECT_EQ(rows.find(2 * kCount + 1), rows.kNone);
  }
}

// Goal: what is added is a sum, and bodies of messages hold all of it, in the order of numbers; the rows can still be read.
TEST(RowMap, bodies_hold_all_rows) {
  for (const std::size_t width : {1u, 5u, 100000u}) {
    for (const std::size_t count : {0u, 1u, 7u, 40000u}) {
      if (width * count > 1000000) continue;
      RowMap<std::int32_t> rows(width);
      for (int again = 0; again < 2; ++again) {
        for (Key key = 0; key < count; ++key) {
          rows.add(key * 3, RowMap<std::int32_t>::kNone, std::vector<std::int32_t>(width, static_cast<std::int32_t>(key)));
        }
      }
      Key key = 0;
      for (const auto& body : rows.bodies()) {
        ASSERT_EQ(body.bytes.size(), body.rows * (sizeof(Key) + width * sizeof(std::int32_t)));
        const auto* const keys = reinterpret_cast<const Key*>(body.bytes.data());
        const auto* const values = reinterpret_cast<const std::int32_t*>(keys + body.rows);
        for (std::size_t row = 0; row < body.rows; ++row, ++key) {
          ASSERT_EQ(keys[row], key * 3);
          ASSERT_EQ(values[row * width + width - 1], 2 * static_cast<std::int32_t>(key));
          ASSERT_EQ(rows.row(rows.find(key * 3))[width - 1], 2 * static_cast<std::int32_t>(key));
        }
      }
      EXPECT_EQ(key, count);
    }
  }
}

// Goal: rows whose keys came in any order are found also after they left as bodies, and a guess never hides one.
TEST(RowMap, rows_that_left_are_found) {
  RowMap<std::int32_t> rows(1, BytesPool::of_process(), 100);
  constexpr Key kCount = 30000;
  const auto key_of = [](Key i) { return spread(i); };
  for (Key i = 0; i < kCount; ++i) rows.add(key_of(i), rows.guess(key_of(i)), std::vector<std::int32_t>{static_cast<std::int32_t>(i)});
  for (const bool left : {false, true}) {
    if (left) rows.bodies();
    for (Key i = 0; i < kCount; ++i) ASSERT_EQ(rows.find(key_of(i), rows.guess(key_of(i))), i);
    for (Key i = kCount; i < 2 * kCount; ++i) ASSERT_EQ(rows.find(key_of(i), rows.guess(key_of(i))), rows.kNone);
  }
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

// Goal: what comes out of a gate by rows is the mean of everybody's tables, the same bits as an addition of the whole tables in rank order,
// whatever rows members have: none, some, the same, all; dense as dense and sparse as sparse. Method: several members in one process on
// a scripted network; oracle: one loop over whole tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "tests/exchange/members.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kTableRows = 50, kWidth = 7;

using Table = std::map<std::int64_t, std::vector<float>>;  // by row

ExchangePlan by_rows(std::uint32_t ranks, bool sparse) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {{.name = "embedding.weight", .count = kTableRows * kWidth, .width = kWidth, .touched = 5, .sparse = sparse},
                  {.name = "bias", .count = 3, .first_use = 1}};
  plan.units = {{{0}, kByRows, 16384, 0, 0, 0}, {{1}, "direct", 16384, 1, 0, 0}};
  return plan;
}

Table some_rows(std::mt19937_64& random, std::uint64_t count) {
  std::normal_distribution<float> normal;
  Table table;
  while (table.size() < count) {
    auto& row = table[static_cast<std::int64_t>(random() % kTableRows)];
    row.resize(kWidth);
    for (auto& v : row) v = normal(random);
  }
  return table;
}

struct OwnRows {
  std::vector<std::int64_t> index;
  std::vector<float> values, dense;
  explicit OwnRows(const Table& table) : dense(kTableRows * kWidth) {
    for (const auto& [row, of_row] : table) {
      index.push_back(row);
      values.insert(values.end(), of_row.begin(), of_row.end());
      std::copy(of_row.begin(), of_row.end(), dense.begin() + row * static_cast<std::int64_t>(kWidth));
    }
  }
  Rows rows() const { return {index.size(), index.data(), reinterpret_cast<const std::byte*>(values.data())}; }
};

// Sums of what members have of a row, in rank order, divided once; unequal weights multiply before.
Table mean_of(const std::vector<std::optional<Table>>& tables, const std::vector<float>& weights) {
  const bool equal = std::all_of(weights.begin(), weights.end(), [&](float w) { return w == weights[0]; });
  float total = 0;
  for (const float w : weights) total += equal ? 1 : w;
  Table mean;
  for (std::size_t r = 0; r < tables.size(); ++r) {
    if (!tables[r]) continue;
    for (const auto& [row, values] : *tables[r]) {
      auto [place, is_first] = mean.try_emplace(row, kWidth);
      for (std::uint64_t c = 0; c < kWidth; ++c) {
        const float term = equal ? values[c] : values[c] * weights[r];
        place->second[c] = is_first ? term : place->second[c] + term;
      }
    }
  }
  for (auto& [row, values] : mean) {
    for (auto& v : values) v /= total;
  }
  return mean;
}

void step_rows(Members& members, bool sparse, const std::vector<std::optional<Table>>& tables, const std::vector<float>& weights) {
  std::vector<OwnRows> own;
  for (const auto& table : tables) own.emplace_back(table.value_or(Table()));
  const std::vector<float> bias(3, 1);
  for (std::uint32_t r = 0; r < members.size(); ++r) {
    members[r].begin(weights[r]);
    if (!tables[r]) {
      members[r].absent(0);
    } else if (sparse) {
      members[r].produced(0, own[r].rows());
    } else {
      members[r].produced(0, own[r].dense.data());
    }
    members[r].produced(1, bias.data());
  }
  const OwnRows expected(mean_of(tables, weights));
  const bool anybody = std::any_of(tables.begin(), tables.end(), [](const auto& table) { return table.has_value(); });
  for (std::uint32_t r = 0; r < members.size(); ++r) {
    if (sparse) {
      const auto* got = members[r].rows(0);
      ASSERT_EQ(got != nullptr, anybody);
      if (!got) continue;
      EXPECT_EQ(std::vector<std::int64_t>(got->index, got->index + got->count), expected.index);
      const auto* values = reinterpret_cast<const float*>(got->values);
      EXPECT_EQ(std::vector<float>(values, values + got->count * kWidth), expected.values);
    } else {
      const auto* got = static_cast<const float*>(members[r].result(0));
      ASSERT_EQ(got != nullptr, anybody);
      if (got) {
        EXPECT_EQ(std::vector<float>(got, got + expected.dense.size()), expected.dense);
      }
    }
  }
  for (std::uint32_t r = 0; r < members.size(); ++r) members[r].commit();
}

TEST(Rows, of_all_members_are_added_in_rank_order_whatever_each_has) {
  for (const bool sparse : {false, true}) {
    for (const std::uint32_t size : {2u, 3u, 5u}) {
      std::mt19937_64 random(size);
      Members members(by_rows(size, sparse), size);
      for (int round = 0; round < 8; ++round) {
        std::vector<std::optional<Table>> tables(size);
        for (auto& table : tables) {
          if (random() % 4 > 0) table = some_rows(random, random() % 9);
        }
        step_rows(members, sparse, tables, std::vector<float>(size, 8));
      }
    }
  }
}

TEST(Rows, are_weighted_where_members_have_unequal_weights) {
  for (const bool sparse : {false, true}) {
    std::mt19937_64 random(7);
    Members members(by_rows(3, sparse));
    step_rows(members, sparse, {some_rows(random, 9), some_rows(random, 20), some_rows(random, 4)}, {4, 1, 3});
  }
}

// Everybody has all rows: twice the table would travel as rows, and once as a table.
TEST(Rows, give_way_to_the_table_where_they_are_more) {
  std::mt19937_64 random(8);
  Members members(by_rows(4, false));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::optional<Table>> tables(4);
    for (auto& table : tables) table = some_rows(random, round == 1 ? 3 : kTableRows);
    tables[2].reset();
    step_rows(members, false, tables, {1, 1, 1, 1});
  }
}

TEST(Rows, that_nobody_has_are_absent) {
  Members members(by_rows(2, true));
  step_rows(members, true, {std::nullopt, std::nullopt}, {1, 1});
  step_rows(members, true, {Table(), std::nullopt}, {1, 1});
}

TEST(Rows, leave_the_last_mean_whole_where_the_gradient_was_accumulated_in_it) {
  std::mt19937_64 random(9);
  Members members(by_rows(2, false));
  std::vector<float> bias(3), first(kTableRows * kWidth, 2);
  std::vector<const float*> last(2, first.data());
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      members[r].begin(1);
      members[r].produced(0, last[r]);
      members[r].produced(1, bias.data());
    }
    for (std::uint32_t r = 0; r < 2; ++r) {
      const auto* mean = static_cast<const float*>(members[r].result(0));
      EXPECT_NE(mean, last[r]);
      EXPECT_THAT(std::vector<float>(last[r], last[r] + first.size()), testing::Each(2));
      EXPECT_THAT(std::vector<float>(mean, mean + first.size()), testing::Each(2));
      last[r] = mean;
    }
    for (std::uint32_t r = 0; r < 2; ++r) members[r].commit();
  }
}

TEST(Rows, of_a_number_that_the_table_does_not_have_end_the_run_with_whose_they_are) {
  Members members(by_rows(2, true));
  const std::vector<float> values(kWidth), bias(3);
  const std::int64_t beyond = kTableRows, first = 0;
  for (std::uint32_t r = 0; r < 2; ++r) {
    members[r].begin(1);
    members[r].produced(0, Rows{1, r == 1 ? &beyond : &first, reinterpret_cast<const std::byte*>(values.data())});
    members[r].produced(1, bias.data());
  }
  try {
    members[0].rows(0);
    FAIL() << "row 50 of 50 was added";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::mismatch);
    EXPECT_STREQ(e.what(), "exchange: rank 1 has row 50 of embedding.weight (run the same code on every member)");
  }
}

}  // namespace
}  // namespace shoal::exchange

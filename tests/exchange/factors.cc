// Goal: what comes out of a gate by factors is every member's rows in rank order, the same everywhere, and what no pair explains as a mean
// beside them; whatever members have: none, some, only a rest. Method: several members in one process on a scripted network; integers, so
// that the product of what was gathered can be compared exactly with the sum of everybody's.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <span>

#include "tests/exchange/members.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kInputs = 40, kOutputs = 30;
using Matrix = std::vector<float>;

struct OwnPairs {
  std::uint64_t rows = 0;
  Matrix x, g, rest;  // rest: empty for none
  factor::Pair pair() const {
    const auto bytes = [](const Matrix& m) { return m.empty() ? nullptr : reinterpret_cast<const std::byte*>(m.data()); };
    return {rows, bytes(x), bytes(g), bytes(rest)};
  }
};

Matrix random_matrix(std::mt19937_64& random, std::uint64_t elements) {
  std::uniform_int_distribution<int> digit(-4, 4);
  Matrix m(elements);
  for (auto& v : m) v = static_cast<float>(digit(random));
  return m;
}

OwnPairs some(std::mt19937_64& random, std::uint64_t rows, bool rest) {
  return {rows, random_matrix(random, rows * kInputs), random_matrix(random, rows * kOutputs),
          rest ? random_matrix(random, kInputs * kOutputs) : Matrix()};
}

Matrix product(std::uint64_t rows, const float* x, const float* g) {
  Matrix w(kInputs * kOutputs);
  for (std::uint64_t k = 0; k < rows; ++k) {
    for (std::uint64_t n = 0; n < kOutputs; ++n) {
      for (std::uint64_t m = 0; m < kInputs; ++m) w[n * kInputs + m] += g[k * kOutputs + n] * x[k * kInputs + m];
    }
  }
  return w;
}

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

ExchangePlan by_factors(std::uint32_t ranks) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {{"fc.weight", DType::f32, kInputs * kOutputs, 0, -1, 5, kOutputs}, {"fc.bias", DType::f32, kOutputs, 1, -1}};
  plan.units = {{{0}, kByFactors, 16384, 0, 0, 0}, {{1}, "direct", 16384, 1, 0, 0}};
  return plan;
}

void step(Members& members, const std::vector<OwnPairs>& own, const std::vector<double>& weights) {
  const Matrix bias(kOutputs, 1);
  for (std::size_t r = 0; r < own.size(); ++r) {
    members[r].begin(weights[r]);
    if (own[r].rows == 0 && own[r].rest.empty()) {
      members[r].absent(0);
    } else {
      members[r].produced(0, own[r].pair());
    }
    members[r].produced(1, bias.data());
  }
  double total = 0;
  for (const double w : weights) total += w;
  Matrix sum(kInputs * kOutputs), rests(kInputs * kOutputs);
  bool anybody = false, any_rest = false;
  std::uint64_t rows = 0;
  for (std::size_t r = 0; r < own.size(); ++r) {
    const Matrix mine = product(own[r].rows, own[r].x.data(), own[r].g.data());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += static_cast<float>(weights[r]) * mine[i];
      if (!own[r].rest.empty()) rests[i] += static_cast<float>(weights[r]) * own[r].rest[i];
    }
    rows += own[r].rows;
    anybody = anybody || own[r].rows > 0 || !own[r].rest.empty();
    any_rest = any_rest || !own[r].rest.empty();
  }
  for (std::size_t r = 0; r < own.size(); ++r) {
    const auto* got = members[r].factors(0);
    ASSERT_EQ(got != nullptr, anybody);
    if (!got) continue;
    ASSERT_EQ(got->total, rows);
    EXPECT_EQ(got->rest != nullptr, any_rest);
    // A weighted row counts as often: the sum of the parts is the whole.
    Matrix whole(kInputs * kOutputs);
    std::uint64_t first = 0;
    for (std::size_t s = 0; s < own.size(); ++s) {
      const Matrix part = product(got->rows[s], floats(got->x) + first * kInputs, floats(got->g) + first * kOutputs);
      const float weight = got->weight.empty() ? 1 : static_cast<float>(got->weight[s]);
      for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += weight * part[i];
      first += got->rows[s];
    }
    const float scale = got->weight.empty() ? static_cast<float>(weights[0]) : 1;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(scale * whole[i], sum[i]);
      if (any_rest) {
        ASSERT_NEAR(floats(got->rest)[i], rests[i] / total, 1e-6);
      }
    }
    EXPECT_EQ(got->divisor, got->weight.empty() ? total / weights[0] : total);
  }
  for (std::size_t r = 0; r < own.size(); ++r) members[r].commit();
}

TEST(Factors, of_all_members_lie_in_rank_order_whatever_each_has) {
  for (const std::uint32_t size : {2u, 3u, 4u, 5u}) {
    std::mt19937_64 random(size);
    Members members(by_factors(size), size);
    for (int round = 0; round < 6; ++round) {
      std::vector<OwnPairs> own;
      for (std::uint32_t r = 0; r < size; ++r) own.push_back(some(random, random() % 9, round >= 2 && random() % 3 == 0));
      step(members, own, std::vector<double>(size, 2));
    }
  }
}

TEST(Factors, are_weighted_where_members_have_unequal_weights) {
  std::mt19937_64 random(7);
  Members members(by_factors(3));
  step(members, {some(random, 4, false), some(random, 1, true), some(random, 3, false)}, {4, 1, 3});
}

TEST(Factors, that_nobody_has_are_absent) {
  Members members(by_factors(3));
  step(members, {OwnPairs(), OwnPairs(), OwnPairs()}, {1, 1, 1});
}

TEST(Factors, may_be_only_a_rest) {
  std::mt19937_64 random(8);
  Members members(by_factors(2));
  step(members, {some(random, 0, true), OwnPairs()}, {1, 1});
}

// Goal: rows of two bytes a number lie in rank order as they were sent, and the plan that says so survives its file.
TEST(Factors, travel_in_the_type_of_their_rows) {
  std::mt19937_64 random(10);
  auto plan = by_factors(3);
  plan.tensors[0].bf16_rows = true;
  plan = plan_from_json(to_json(plan), "here");
  ASSERT_TRUE(plan.tensors[0].bf16_rows);
  EXPECT_NE(plan.hash(), by_factors(3).hash());
  Members members(plan, 3);
  const Matrix bias(kOutputs, 1);
  std::vector<std::vector<std::uint16_t>> x(3), g(3);
  for (std::size_t r = 0; r < 3; ++r) {
    const std::uint64_t rows = 2 + 3 * r;
    for (std::uint64_t i = 0; i < rows * kInputs; ++i) x[r].push_back(static_cast<std::uint16_t>(random()));
    for (std::uint64_t i = 0; i < rows * kOutputs; ++i) g[r].push_back(static_cast<std::uint16_t>(random()));
    members[r].begin(1);
    members[r].produced(0, factor::Pair{rows, std::as_bytes(std::span(x[r])).data(), std::as_bytes(std::span(g[r])).data(), nullptr});
    members[r].produced(1, bias.data());
  }
  const auto joined = [](const std::vector<std::vector<std::uint16_t>>& parts) {
    std::vector<std::uint16_t> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  for (std::size_t r = 0; r < 3; ++r) {
    const auto* got = members[r].factors(0);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->total, 15u);
    EXPECT_EQ(std::memcmp(got->x, joined(x).data(), 15 * kInputs * 2), 0);
    EXPECT_EQ(std::memcmp(got->g, joined(g).data(), 15 * kOutputs * 2), 0);
  }
  for (std::size_t r = 0; r < 3; ++r) {
    members[r].result(1);
    members[r].commit();
  }
}

// A plain gradient of a tensor that was planned by factors is a pair that is all rest.
TEST(Factors, planned_but_not_there_give_way_to_the_gradient) {
  std::mt19937_64 random(9);
  Members members(by_factors(2));
  const Matrix gradient = random_matrix(random, kInputs * kOutputs), bias(kOutputs, 1);
  for (std::size_t r = 0; r < 2; ++r) {
    members[r].begin(1);
    members[r].produced(0, gradient.data());
    members[r].produced(1, bias.data());
  }
  for (std::size_t r = 0; r < 2; ++r) {
    const auto* got = members[r].factors(0);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->total, 0u);
    EXPECT_EQ(Matrix(floats(got->rest), floats(got->rest) + gradient.size()), gradient);
  }
}

TEST(Factors, that_are_still_on_their_way_when_a_member_leaves_end) {
  std::mt19937_64 random(10);
  Members members(by_factors(3));
  const OwnPairs own = some(random, 500, true);
  for (std::size_t r = 0; r < 3; ++r) {
    members[r].begin(1);
    if (r != 2) members[r].produced(0, own.pair());
  }
  members.job().run();
  for (std::size_t r = 0; r < 3; ++r) members.leave(r);
  members.job().run();
}

}  // namespace
}  // namespace shoal::exchange

// Goal: the mean of a divided layer is, on every member, its strip of the plain mean: of the rows that its group has and of what no row explains, whatever
// of both members have. Method: several members in one process on a scripted network; integers, so that sums are exact; the oracle adds everybody's
// whole gradients in a loop.
#include <gtest/gtest.h>

#include <random>

#include "shoal/core/error.h"
#include "shoal/exchange/strips.h"
#include "shoal/exchange/way.h"
#include "tests/exchange/members.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kHybridInputs = 12, kHybridOutputs = 11;
using Matrix = std::vector<float>;

Matrix drawn_matrix(std::mt19937_64& random, std::uint64_t elements) {
  std::uniform_int_distribution<int> digit(-4, 4);
  Matrix m(elements);
  for (auto& v : m) v = static_cast<float>(digit(random));
  return m;
}

const std::byte* bytes(const Matrix& m) { return m.empty() ? nullptr : reinterpret_cast<const std::byte*>(m.data()); }

ExchangePlan divided(std::uint32_t ranks, std::uint32_t groups) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {{.name = "fc.weight", .count = kHybridInputs * kHybridOutputs, .rows = 5, .outputs = kHybridOutputs, .divisible = true}};
  plan.units = {{{0}, "hybrid:" + std::to_string(groups), 16384, 0, 0, 0}};
  return plan;
}

// One iteration in which member r has weight r + 1 (or all the same), whose rows gave a gradient unless r is in `without`, and the rest where
// its bit is in `rests`.
void step_divided(Members& members, const Strips& strips, bool equal, unsigned rests, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto ranks = strips.ranks;
  std::vector<Matrix> rows(ranks), rest(ranks), of_strip(ranks, Matrix());
  double total = 0;
  Matrix sum(kHybridInputs * kHybridOutputs);
  const auto weight = [&](std::uint32_t r) { return equal ? 1.0F : static_cast<float>(r + 1); };
  for (std::uint32_t r = 0; r < ranks; ++r) {
    rows[r] = drawn_matrix(random, kHybridInputs * kHybridOutputs);
    if ((rests >> r) & 1) rest[r] = drawn_matrix(random, kHybridInputs * kHybridOutputs);
    total += weight(r);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight(r) * (rows[r][i] + (rest[r].empty() ? 0 : rest[r][i]));
  }
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const auto place = strips.place(r);
    of_strip[r].assign(strips.rows(place) * kHybridInputs, 0);
    for (const auto other : strips.group_of(r)) {
      const float* mine = rows[other].data() + strips.first(place) * kHybridInputs;
      for (std::size_t i = 0; i < of_strip[r].size(); ++i) of_strip[r][i] += weight(other) * mine[i];
    }
    members[r].begin(weight(r));
    members[r].produced(0, Strip{bytes(of_strip[r]), bytes(rest[r])});
  }
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const auto* mean = static_cast<const float*>(members[r].result(0));
    ASSERT_NE(mean, nullptr);
    const auto place = strips.place(r);
    for (std::size_t i = 0; i < of_strip[r].size(); ++i) {
      // Rows and rest are divided apart from each other.
      EXPECT_NEAR(mean[i], sum[strips.first(place) * kHybridInputs + i] / static_cast<float>(total), 1e-5) << "rank " << r << ", element " << i;
    }
  }
  for (std::uint32_t r = 0; r < ranks; ++r) members[r].commit();
}

TEST(Hybrid, every_member_gets_its_strip_of_the_mean) {
  for (const auto& [ranks, groups] : {std::pair{2u, 1u}, {3u, 1u}, {4u, 1u}, {4u, 2u}, {6u, 2u}, {6u, 3u}}) {
    const Strips strips{ranks, groups, kHybridOutputs};
    Members members(divided(ranks, groups));
    std::uint64_t seed = 1;
    for (const bool equal : {true, false}) {
      for (const unsigned rests : {0u, 1u, 2u, (1u << ranks) - 1, 0u}) step_divided(members, strips, equal, rests, seed++);
    }
  }
}

TEST(Hybrid, what_nobody_has_stays_absent) {
  Members members(divided(4, 2));
  for (std::uint32_t r = 0; r < 4; ++r) {
    members[r].begin(1);
    members[r].absent(0);
  }
  for (std::uint32_t r = 0; r < 4; ++r) EXPECT_EQ(members[r].result(0), nullptr);
  for (std::uint32_t r = 0; r < 4; ++r) members[r].commit();
}

TEST(Hybrid, a_group_whose_rows_are_missing_adds_nothing) {
  Members members(divided(4, 2));
  const Matrix ones(kHybridOutputs * kHybridInputs, 1);
  for (std::uint32_t r = 0; r < 4; ++r) {
    members[r].begin(1);
    if (r < 2) {
      members[r].produced(0, Strip{bytes(ones), nullptr});
    } else {
      members[r].absent(0);
    }
  }
  for (std::uint32_t r = 0; r < 4; ++r) EXPECT_EQ(*static_cast<const float*>(members[r].result(0)), 0.25F);
  for (std::uint32_t r = 0; r < 4; ++r) members[r].commit();
}

TEST(Hybrid, strips_partition_the_outputs) {
  for (std::uint32_t members = 1; members <= 9; ++members) {
    const Strips strips{members, 1, 5};
    std::uint64_t next = 0;
    for (std::uint32_t place = 0; place < members; ++place) {
      EXPECT_EQ(strips.first(place), next);
      next += strips.rows(place);
    }
    EXPECT_EQ(next, 5u);
  }
}

TEST(Hybrid, groups_that_do_not_divide_the_members_are_refused) {
  const auto refusal = [](const char* name, std::uint32_t ranks) -> std::string {
    try {
      way_named(name)->check(ranks);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("hybrid:2", 4), "accepted");
  EXPECT_EQ(refusal("hybrid:3", 4), "plan: hybrid:3 does not divide 4 members into equal groups of two or more (the number of groups divides that of "
                                    "members and is smaller)");
  EXPECT_EQ(refusal("hybrid:4", 4).substr(0, 33), "plan: hybrid:4 does not divide 4 ");
}

}  // namespace
}  // namespace shoal::exchange

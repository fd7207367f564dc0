// Goal: of a lossy way is lost in one iteration what it says, and in the end nothing but rounding: what was left out is added later, also by
// a run that goes on from what another one kept. All members have the same bits. Method: several members in one process on a scripted network;
// oracles: each way's own arithmetic as plain loops, gradients that it says exactly, and the sum over iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "tests/exchange/members.h"
#include "tests/exchange/normal_numbers.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kRows = 130, kColumns = 256, kCount = kRows * kColumns;
using Gradient = std::vector<float>;
using OfMembers = std::vector<std::optional<Gradient>>;

ExchangePlan by(const std::string& way, std::uint32_t ranks, std::uint64_t count = kCount) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {{.name = "weight", .count = count, .outputs = kRows}};
  plan.units = {{{0}, way, 16384, 0, 0, 0}};
  return plan;
}

Gradient random_gradient(std::uint64_t seed) { return normal_numbers(kCount, seed); }

OfMembers gradients_at(std::uint32_t ranks, std::uint64_t step) {
  OfMembers all;
  for (std::uint32_t r = 0; r < ranks; ++r) all.emplace_back(random_gradient(100 * step + r));
  return all;
}

// The mean that all members have, the same bits; nothing where nobody had a gradient.
std::optional<Gradient> mean_after(Members& members, const OfMembers& gradients, const std::vector<double>& weights = {}) {
  for (std::uint32_t r = 0; r < members.size(); ++r) {
    members[r].begin(weights.empty() ? 1 : weights[r]);
    gradients[r] ? members[r].produced(0, gradients[r]->data()) : members[r].absent(0);
  }
  const auto count = members[0].plan().tensors[0].count;
  std::optional<Gradient> mean;
  for (std::uint32_t r = 0; r < members.size(); ++r) {
    const auto* got = static_cast<const float*>(members[r].result(0));
    if (got && r == 0) mean.emplace(got, got + count);
    EXPECT_EQ(got != nullptr, mean.has_value());
    if (got) {
      EXPECT_EQ(std::memcmp(got, mean->data(), count * sizeof(float)), 0) << "rank " << r;
    }
  }
  for (std::uint32_t r = 0; r < members.size(); ++r) members[r].commit();
  return mean;
}

std::vector<double> true_mean(const OfMembers& gradients) {
  std::vector<double> mean(kCount);
  for (const auto& gradient : gradients) {
    for (std::uint64_t i = 0; gradient && i < kCount; ++i) mean[i] += double{(*gradient)[i]} / static_cast<double>(gradients.size());
  }
  return mean;
}

using AllKept = std::vector<std::vector<std::vector<std::byte>>>;  // by member, by what is kept
AllKept copy_of_kept(Members& members) {
  AllKept all(members.size());
  for (std::uint32_t r = 0; r < members.size(); ++r) {
    for (const auto& [tensor, kept] : members[r].kept()) all[r].emplace_back(kept.data, kept.data + kept.count * size_of(kept.type));
  }
  return all;
}

const std::vector<std::string> kRemembering = {"int8", "topk:0.01", "topk:0.01:0.9:3:2", "powersgd:2"};

float through_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000U);
}

TEST(Bf16, is_rounded_on_the_way_to_the_owner_and_back_and_added_in_between) {
  Members members(by("bf16", 3));
  for (std::uint64_t s = 0; s < 3; ++s) {
    const auto gradients = gradients_at(3, s);
    const auto mean = mean_after(members, gradients);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const float sum = through_bf16((*gradients[0])[i]) + through_bf16((*gradients[1])[i]) + through_bf16((*gradients[2])[i]);
      ASSERT_EQ((*mean)[i], through_bf16(through_bf16(sum) / 3));
    }
  }
}

// Whole steps of each block's largest value / 127, the same for all members: nothing is left to round.
TEST(Int8, says_whole_steps_exactly) {
  for (const std::uint32_t ranks : {2u, 3u, 5u}) {
    Members members(by("int8", ranks));
    Gradient steps(kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) steps[i] = 0.25F * static_cast<float>(static_cast<int>(i * 7 % 255) - 127);
    const auto mean = mean_after(members, OfMembers(ranks, steps));
    for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ((*mean)[i], steps[i]);
  }
}

TEST(Int8, differs_by_at_most_a_step_in_each_direction) {
  Members members(by("int8", 4));
  const auto gradients = gradients_at(4, 1);
  const auto mean = mean_after(members, gradients, {1, 2, 3, 4});
  for (std::uint64_t i = 0; i < kCount; ++i) {
    double expected = 0;
    for (std::uint32_t r = 0; r < 4; ++r) expected += (r + 1) * double{(*gradients[r])[i]} / 10;
    ASSERT_NEAR((*mean)[i], expected, 6.0 / 127);  // magnitudes up to 6: half a step of the gradients, half a step of the mean
  }
}

// Deep gradient compression as its paper writes it, one member, in plain loops.
struct OneMember {
  Gradient u = Gradient(kCount), v = Gradient(kCount);
  std::vector<std::pair<std::uint32_t, float>> send(const Gradient& g, std::uint64_t k, float momentum, float factor) {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      u[i] = momentum * u[i] + g[i] * factor;
      v[i] += u[i];
    }
    std::vector<std::uint32_t> order(kCount);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return std::fabs(v[a]) > std::fabs(v[b]); });
    std::vector<std::pair<std::uint32_t, float>> sent;
    for (std::uint64_t j = 0; j < k; ++j) {
      sent.emplace_back(order[j], v[order[j]]);
      u[order[j]] = v[order[j]] = 0;
    }
    return sent;
  }
};

TEST(Topk, is_deep_gradient_compression_bit_for_bit) {
  Members members(by("topk:0.01:0.9:4:30", 3));
  std::vector<OneMember> oracle(3);
  for (std::uint64_t s = 0; s < 7; ++s) {
    auto gradients = gradients_at(3, s);
    for (auto& x : *gradients[2]) x *= 0.01F;  // short enough not to be clipped
    const auto mean = mean_after(members, gradients);
    const double shares[] = {0.25, 0.0625, 0.015625, 0.01};
    const auto k = static_cast<std::uint64_t>(std::ceil(shares[std::min<std::uint64_t>(s, 3)] * kCount));
    Gradient expected(kCount);
    for (std::uint32_t r = 0; r < 3; ++r) {
      double square = 0;
      for (const float x : *gradients[r]) square += double{x} * x;
      const double most = 30 / std::sqrt(3.0);
      const float factor = std::sqrt(square) > most ? static_cast<float>(most / std::sqrt(square)) : 1.0F;
      EXPECT_EQ(factor < 1, r < 2);
      for (const auto& [i, value] : oracle[r].send(*gradients[r], k, 0.9F, factor)) expected[i] += value;
    }
    for (auto& x : expected) x /= 3;
    ASSERT_EQ(*mean, expected) << "step " << s;
  }
}

TEST(Topk, finds_the_largest_also_among_equals_and_zeros) {
  Members members(by("topk:0.001", 2));
  Gradient flat(kCount, 1), empty(kCount);
  flat[kCount - 1] = -2;
  const auto mean = mean_after(members, {flat, empty});
  const std::uint64_t k = 34;  // a thousandth
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ((*mean)[i], i == kCount - 1 ? -1.0F : i < k - 1 ? 0.5F : 0.0F) << i;
}

// A matrix of rank 2 that is the same for all: one round finds it, whatever Q begins with.
TEST(PowerSgd, says_matrices_of_its_rank) {
  Members members(by("powersgd:2", 3));
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  Gradient left(2 * kRows), right(2 * kColumns), product(kCount);
  for (auto& x : left) x = normal(random);
  for (auto& x : right) x = normal(random);
  for (std::uint64_t i = 0; i < kRows; ++i) {
    for (std::uint64_t j = 0; j < kColumns; ++j) product[i * kColumns + j] = left[i] * right[j] + left[kRows + i] * right[kColumns + j];
  }
  for (int s = 0; s < 3; ++s) {
    const auto mean = mean_after(members, OfMembers(3, product));
    for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_NEAR((*mean)[i], product[i], 1e-4);
  }
}

// Over all iterations: the means and what is still kept are together the true means.
TEST(Lossy, ways_lose_nothing_in_the_end) {
  for (const std::string way : {"int8", "topk:0.01", "powersgd:2"}) {
    constexpr std::uint32_t kRanks = 3;
    Members members(by(way, kRanks));
    std::vector<double> expected(kCount), got(kCount);
    for (std::uint64_t s = 0; s < 12; ++s) {
      auto gradients = gradients_at(kRanks, s);
      if (s % 3 == 1) gradients[s % kRanks].reset();  // a member that has none this time
      if (s == 7) gradients = OfMembers(kRanks);      // nobody has
      const auto mean = mean_after(members, gradients);
      ASSERT_EQ(mean.has_value(), s != 7);
      const auto truth = true_mean(gradients);
      for (std::uint64_t i = 0; i < kCount; ++i) {
        expected[i] += truth[i];
        if (mean) got[i] += (*mean)[i];
      }
    }
    double lost = 0;
    std::uint64_t owned = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) lost = std::max(lost, std::fabs(expected[i] - got[i]));
    EXPECT_GT(lost, 1e-3) << way << " is not lossy";
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      for (const auto& [tensor, kept] : members[r].kept()) {
        const auto* values = reinterpret_cast<const float*>(kept.data);
        const bool owners = kept.name == "owner's residual";
        const bool gradients = kept.name == "residual" || kept.name == "unsent";
        for (std::uint64_t i = 0; i < kept.count && (owners || gradients); ++i) {
          const auto place = owners ? owned + i : i;
          if (place < kCount) got[place] += values[i] / (owners ? 1 : kRanks);
        }
        if (owners) owned += kept.count;
      }
    }
    for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_NEAR(got[i], expected[i], 2e-4) << way << ", element " << i;
  }
}

TEST(Lossy, ways_go_on_from_what_was_kept_with_the_same_bits) {
  for (const auto& way : kRemembering) {
    Members whole(by(way, 3), 1), first(by(way, 3), 2), second(by(way, 3), 3);
    for (std::uint64_t s = 0; s < 3; ++s) {
      mean_after(whole, gradients_at(3, s));
      mean_after(first, gradients_at(3, s));
    }
    const auto saved = copy_of_kept(first);
    for (std::uint32_t r = 0; r < 3; ++r) {
      second[r].continues(first[r].iteration());
      std::size_t i = 0;
      for (const auto& [tensor, kept] : second[r].kept()) std::copy(saved[r][i].begin(), saved[r][i].end(), kept.data), ++i;
    }
    for (std::uint64_t s = 3; s < 6; ++s) {
      const auto expected = mean_after(whole, gradients_at(3, s)), got = mean_after(second, gradients_at(3, s));
      ASSERT_EQ(*got, *expected) << way << ", step " << s;
    }
  }
}

TEST(Lossy, ways_keep_what_they_have_over_another_plan) {
  for (const auto& way : kRemembering) {
    Members members(by(way, 2));
    mean_after(members, gradients_at(2, 1));
    const auto before = copy_of_kept(members);
    auto faster = by(way, 2);
    faster.link.rate *= 10;
    for (std::uint32_t r = 0; r < 2; ++r) members[r].replan(faster);
    EXPECT_EQ(copy_of_kept(members), before) << way;
  }
}

TEST(Lossy, ways_tell_what_is_no_number_and_do_not_remember_it) {
  for (const auto& way : kRemembering) {
    Members members(by(way, 2));
    auto gradients = gradients_at(2, 1);
    (*gradients[1])[777] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan((*mean_after(members, gradients))[777])) << way;
    for (std::uint64_t s = 2; s < 5; ++s) {
      const auto mean = mean_after(members, gradients_at(2, s));
      if (s > 2) {
        EXPECT_TRUE(std::all_of(mean->begin(), mean->end(), [](float x) { return std::isfinite(x); })) << way;
      }
    }
  }
}

// An overflow under a gradient scaler: all of it is no number, also of a tensor that travels whole.
TEST(Lossy, a_gradient_without_a_number_leaves_nothing_behind) {
  for (const std::uint64_t count : {kCount, std::uint64_t{100}}) {
    Members members(by("topk:0.01:0.9", 2, count));
    for (std::uint64_t s = 0; s < 4; ++s) {
      OfMembers gradients;
      for (std::uint64_t rank = 0; rank < 2; ++rank) gradients.emplace_back(Gradient(count, s == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0F));
      const auto mean = mean_after(members, gradients);
      const auto is_number = [](float x) { return std::isfinite(x); };
      EXPECT_EQ(std::all_of(mean->begin(), mean->end(), is_number), s != 1) << count << " elements, step " << s;
    }
  }
}

// The share falls as the iterations of all members say, also of those that the run before had: who joins it sends as much as the others.
TEST(Topk, a_run_that_continues_another_is_as_far_in_its_warming_up) {
  const auto sent = [](std::uint64_t before) {
    Members members(by("topk:0.01:0:8", 2));
    for (std::uint32_t rank = 0; rank < 2; ++rank) members[rank].continues(before);
    const auto mean = mean_after(members, gradients_at(2, 1));
    return std::count_if(mean->begin(), mean->end(), [](float x) { return x != 0; });
  };
  EXPECT_GT(sent(0), 2 * sent(3));
  EXPECT_GT(sent(3), 2 * sent(100));
}

}  // namespace
}  // namespace shoal::exchange

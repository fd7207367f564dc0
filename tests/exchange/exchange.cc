// Goal: what comes out of a gate is the weighted mean of all members' gradients, the same bits everywhere, whatever the
// timing. Method: several members in one process on a scripted network; oracle: one loop in rank order.
#include "shoal/exchange/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "shoal/exchange/planner.h"
#include "tests/exchange/members.h"

namespace shoal::exchange {
namespace {

using Gradient = std::vector<float>;

const std::vector<std::uint64_t> kSizes = {1, 0, 7, 1000, 40'009, 3, 20'000};

std::vector<TensorSpec> specs() {
  std::vector<TensorSpec> tensors;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    tensors.push_back({"t" + std::to_string(i), DType::f32, kSizes[i], static_cast<std::uint32_t>(i), -1});
  }
  return tensors;
}

ExchangePlan direct(std::uint32_t ranks) { return make_plan(specs(), ranks, {}, {}, parse_choice("direct", "test")); }

// gradients[rank][tensor]
std::vector<std::vector<Gradient>> random_gradients(std::uint32_t ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<Gradient>> all(ranks);
  for (auto& mine : all) {
    for (auto size : kSizes) {
      mine.emplace_back(size);
      for (auto& x : mine.back()) x = normal(random);
    }
  }
  return all;
}

Gradient mean_in_rank_order(const std::vector<std::vector<Gradient>>& all, std::size_t tensor, const std::vector<double>& weights) {
  const bool equal = std::all_of(weights.begin(), weights.end(), [&](double w) { return w == weights[0]; });
  const double total = equal ? static_cast<double>(weights.size()) : std::accumulate(weights.begin(), weights.end(), 0.0);
  Gradient mean(kSizes[tensor]);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const auto term = [&](std::size_t r) { return equal ? all[r][tensor][i] : all[r][tensor][i] * static_cast<float>(weights[r]); };
    float sum = term(0);
    for (std::size_t r = 1; r < all.size(); ++r) sum += term(r);
    mean[i] = sum / static_cast<float>(total);
  }
  return mean;
}

void produce_all(Exchange& exchange, const std::vector<Gradient>& gradients, std::uint64_t order_seed) {
  std::vector<std::uint32_t> order(gradients.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(order_seed));
  for (auto t : order) exchange.produced(t, gradients[t].data());
}

void expect_result(Exchange& exchange, std::uint32_t tensor, const Gradient& expected) {
  const auto* result = static_cast<const float*>(exchange.result(tensor));
  ASSERT_NE(result, nullptr);
  const auto same_bits = [](float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); };
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result, same_bits)) << "tensor " << tensor;
}

TEST(Exchange, only_the_tensors_of_a_turn_travel_in_it) {
  // Goal: turns go round; a tensor is exchanged in its own, and in no other. Oracle: the mean in rank order.
  constexpr std::uint32_t kRanks = 3;
  const auto plan = make_plan(specs(), kRanks, {}, {}, parse_choice("diloco:8:3,*=direct", "test"));
  ASSERT_EQ(plan.turns(), 3u);
  Members members(plan);
  for (std::uint32_t round = 0; round < 5; ++round) {
    const std::uint32_t turn = round % plan.turns();
    const auto gradients = random_gradients(kRanks, round);
    std::vector<std::uint32_t> mine, others;
    for (const auto& unit : plan.units) {
      for (const auto t : unit.tensors) (unit.turn == turn ? mine : others).push_back(t);
    }
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      members[r].begin(1, {}, turn);
      for (const auto t : mine) members[r].produced(t, gradients[r][t].data());
      EXPECT_THROW(members[r].produced(others.front(), gradients[r][others.front()].data()), Error);
    }
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      for (const auto t : mine) expect_result(members[r], t, mean_in_rank_order(gradients, t, std::vector<double>(kRanks, 1)));
    }
    for (std::uint32_t r = 0; r < kRanks; ++r) members[r].commit();
    for (const auto t : mine) expect_result(members[0], t, mean_in_rank_order(gradients, t, std::vector<double>(kRanks, 1)));  // until the next
  }
}

TEST(Exchange, every_member_gets_the_mean_in_rank_order_bit_for_bit) {
  for (std::uint32_t ranks : {2u, 3u, 5u}) {
    for (const auto& weights : {std::vector<double>(ranks, 32.0), std::vector<double>{3, 5, 8, 1, 128}}) {
      Members members(direct(ranks), ranks);
      for (std::uint64_t step = 0; step < 3; ++step) {
        const auto gradients = random_gradients(ranks, step);
        const std::vector<double> used(weights.begin(), weights.begin() + ranks);
        for (std::uint32_t r = 0; r < ranks; ++r) {
          members[r].begin(used[r]);
          produce_all(members[r], gradients[r], 100 * step + r);  // every member produces in another order
        }
        for (std::uint32_t r = 0; r < ranks; ++r) {
          for (std::uint32_t t = 0; t < kSizes.size(); ++t) expect_result(members[r], t, mean_in_rank_order(gradients, t, used));
        }
        for (std::uint32_t r = 0; r < ranks; ++r) members[r].commit();
        EXPECT_EQ(members[0].iteration(), step + 1);
      }
    }
  }
}

TEST(Exchange, inputs_stay_as_they_were) {
  Members members(direct(3));
  const auto gradients = random_gradients(3, 7);
  const auto before = gradients;
  for (std::uint32_t r = 0; r < 3; ++r) {
    members[r].begin(1 + r);
    produce_all(members[r], gradients[r], r);
  }
  for (std::uint32_t r = 0; r < 3; ++r) members[r].commit();
  EXPECT_EQ(gradients, before);
}

TEST(Exchange, a_member_without_data_changes_nothing) {
  Members members(direct(3));
  const auto gradients = random_gradients(3, 9);
  for (std::uint32_t r = 0; r < 3; ++r) {
    members[r].begin(r == 1 ? 0 : 4);
    for (std::uint32_t t = 0; t < kSizes.size(); ++t) {
      r == 1 ? members[r].absent(t) : members[r].produced(t, gradients[r][t].data());
    }
  }
  for (std::uint32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(members[r].weights(), (std::vector<double>{4, 0, 4}));
    for (std::uint32_t t = 0; t < kSizes.size(); ++t) {
      Gradient expected(kSizes[t]);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = (gradients[0][t][i] + gradients[2][t][i]) / 2.0f;
      const auto* result = static_cast<const float*>(members[r].result(t));
      ASSERT_NE(result, nullptr);
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(result[i], expected[i]);  // -0 + 0 may differ in its sign only
    }
  }
}

TEST(Exchange, digests_of_all_members_are_known_to_all) {
  Members members(direct(3));
  const auto gradients = random_gradients(3, 5);
  for (std::uint32_t r = 0; r < 3; ++r) {
    members[r].begin(1, {.digest = 100 + r});
    for (std::uint32_t t = 0; t < kSizes.size(); ++t) members[r].produced(t, gradients[r][t].data());
  }
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_THAT(members[r].digests(), testing::ElementsAre(100, 101, 102));
  for (std::uint32_t r = 0; r < 3; ++r) members[r].commit();
}

TEST(Exchange, all_members_know_what_the_slowest_took) {
  Members members(direct(3));
  const auto gradients = random_gradients(3, 5);
  const Took took[] = {{0.25, 0.5, 0.25, 4}, {0.125, 0.375, 1.5, 2}, {}};
  for (const bool told : {true, false}) {
    for (std::uint32_t r = 0; r < 3; ++r) {
      members[r].begin(1, {.took = told ? took[r] : Took{}});
      produce_all(members[r], gradients[r], r);
    }
    for (std::uint32_t r = 0; r < 3; ++r) {
      const Took slowest = members[r].slowest();
      EXPECT_EQ(slowest.forward, told ? 0.125 : 0);
      EXPECT_EQ(slowest.backward, told ? 0.375 : 0);
      EXPECT_EQ(slowest.between, told ? 1.5 : 0) << "its data came late";
      EXPECT_EQ(slowest.processor, told ? 4 : 0) << "of any member's machine";
    }
    for (std::uint32_t r = 0; r < 3; ++r) members[r].commit();
  }
}

// What one member asks is known to all in the same iteration, and no longer in the next.
TEST(Exchange, what_members_ask_reaches_all_in_the_iteration_that_it_was_asked_in) {
  Members members(direct(3));
  const auto gradients = random_gradients(3, 5);
  const std::uint64_t asks[][3] = {{0, 0, 0}, {0, 1, 4}, {0, 0, 0}, {1ull << 40, 0, 0}};
  for (const auto& of_step : asks) {
    for (std::uint32_t r = 0; r < 3; ++r) {
      members[r].begin(1, {.asks = of_step[r]});
      produce_all(members[r], gradients[r], r);
    }
    for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(members[r].asked(), of_step[0] | of_step[1] | of_step[2]);
    for (std::uint32_t r = 0; r < 3; ++r) members[r].commit();
  }
}

TEST(Exchange, a_gradient_absent_everywhere_stays_absent_and_one_absent_somewhere_does_not) {
  Members members(direct(2));
  const auto gradients = random_gradients(2, 11);
  for (std::uint32_t r = 0; r < 2; ++r) {
    members[r].begin(1);
    for (std::uint32_t t = 0; t < kSizes.size(); ++t) {
      const bool absent = t == 3 || (t == 4 && r == 0);
      absent ? members[r].absent(t) : members[r].produced(t, gradients[r][t].data());
    }
  }
  for (std::uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(members[r].result(3), nullptr);
    const auto* half = static_cast<const float*>(members[r].result(4));
    ASSERT_NE(half, nullptr);
    for (std::size_t i = 0; i < kSizes[4]; ++i) ASSERT_EQ(half[i], (0.0f + gradients[1][4][i]) / 2.0f);
  }
}

TEST(Exchange, a_gradient_accumulated_in_the_last_result_is_reduced_into_other_memory) {
  Members members(direct(2));
  auto gradients = random_gradients(2, 13);
  std::vector<float*> last(2);
  for (int step = 0; step < 4; ++step) {
    std::vector<Gradient> given(2);
    for (std::uint32_t r = 0; r < 2; ++r) {
      members[r].begin(1);
      for (std::uint32_t t = 0; t < kSizes.size(); ++t) {
        const float* data = gradients[r][t].data();
        if (t == 4 && step > 0) {  // zero_grad(set_to_none=False), then backward adds in place
          for (std::size_t i = 0; i < kSizes[t]; ++i) last[r][i] = static_cast<float>(step * 10 + r);
          data = last[r];
          given[r].assign(data, data + kSizes[t]);
        }
        members[r].produced(t, data);
      }
    }
    for (std::uint32_t r = 0; r < 2; ++r) {
      auto* result = static_cast<float*>(const_cast<void*>(members[r].result(4)));
      if (step > 0) {
        EXPECT_NE(result, last[r]);
        EXPECT_EQ(std::vector<float>(last[r], last[r] + kSizes[4]), given[r]);
        EXPECT_EQ(result[17], static_cast<float>(step * 10) + 0.5f);
      }
      last[r] = result;
    }
    for (std::uint32_t r = 0; r < 2; ++r) members[r].commit();
  }
}

TEST(Exchange, members_with_different_plans_are_told_who_differs) {
  net::InprocJob job(2);
  collective::Runner a(job.member(0), {0, 1}), b(job.member(1), {0, 1});
  auto other = specs();
  other[3].count = 999;
  Exchange left(a, 16, make_plan(specs(), 2, {}), std::chrono::seconds(9)), right(b, 16, make_plan(other, 2, {}), std::chrono::seconds(9));
  left.begin(1);
  right.begin(1);
  try {
    left.weights();
    FAIL() << "different plans went unnoticed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::mismatch);
    EXPECT_STREQ(e.what(), "rank 0 and rank 1: have different models or exchange plans at step 0 (run the same code and --plan on every member)");
  }
  EXPECT_THROW(right.weights(), Error);
}

// Whichever comes first. The one that has ended is there still, and waits for nobody.
TEST(Exchange, who_begins_an_iteration_before_which_another_has_ended_is_told_so) {
  for (const bool ends_first : {true, false}) {
    Members members(direct(2));
    const auto gradients = random_gradients(2, 1);
    for (std::uint32_t r = 0; r < 2; ++r) {
      members[r].begin(1);
      produce_all(members[r], gradients[r], r);
    }
    for (std::uint32_t r = 0; r < 2; ++r) members[r].commit();
    if (ends_first) members[0].end();
    members[1].begin(1);
    if (!ends_first) members[0].end();
    try {
      members[1].weights();
      FAIL() << "an iteration of one";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::mismatch);
      EXPECT_STREQ(e.what(), "rank 0: ended before step 1, which rank 1 begins (every member must take the same number of steps; use model.join() for uneven inputs)");
    }
  }
}

TEST(Exchange, a_lost_member_ends_every_wait_with_its_name) {
  for (std::uint64_t moment : {50'000u, 300'000u, 1'000'000u}) {
    Members members(direct(3), moment);
    const auto gradients = random_gradients(3, 1);
    for (std::uint32_t r = 0; r < 3; ++r) {
      members[r].begin(1);
      produce_all(members[r], gradients[r], r);
    }
    members.job().at(Nanoseconds(moment), [&] { members.kill(1); });
    for (std::uint32_t r : {0u, 2u}) {
      try {
        members[r].commit();
        ADD_FAILURE() << "rank " << r << " committed without rank 1";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::peer_lost);
        EXPECT_THAT(e.what(), testing::HasSubstr("rank 1"));
      }
    }
  }
}

TEST(Exchange, a_member_that_never_comes_is_named_by_the_deadline) {
  Members members(direct(2), 1, std::chrono::seconds(2));
  members[0].begin(1);
  produce_all(members[0], random_gradients(1, 1)[0], 0);
  try {
    members[0].commit();
    FAIL() << "nobody was there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::timeout);
    EXPECT_THAT(e.what(), testing::AllOf(testing::StartsWith("step 0: "), testing::HasSubstr("did not arrive within 2 s")));
  }
}

TEST(Exchange, a_gradient_produced_twice_is_refused) {
  Members members(direct(2));
  const auto gradients = random_gradients(2, 1);
  members[0].begin(1);
  members[0].produced(2, gradients[0][2].data());
  EXPECT_THROW(members[0].produced(2, gradients[0][2].data()), Error);
}

TEST(Exchange, whoever_produces_hears_that_there_is_no_memory_for_the_mean) {
  net::InprocJob job(2);
  collective::Runner runner(job.member(0), {0, 1});
  const std::vector<TensorSpec> huge = {{"huge", DType::f32, std::uint64_t{1} << 50, 0, -1}};
  Exchange exchange(runner, 16, make_plan(huge, 2, {}, {}, parse_choice("direct", "test")), std::chrono::seconds(60));
  exchange.begin(1);
  const float first = 1;
  try {
    exchange.produced(0, &first);
    FAIL() << "there is no such machine";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "out of memory: 4503599627370496 bytes for the exchange of gradients");
  }
}

TEST(Exchange, can_leave_in_the_middle_of_a_step) {
  Members members(direct(3));
  const auto gradients = random_gradients(3, 1);
  members[0].begin(1);
  produce_all(members[0], gradients[0], 0);
  members[1].begin(1);
  members.leave(0);  // must not hang, and no handler may touch it afterwards (the sanitizers watch)
  members.leave(1);
  members.job().run();
}

}  // namespace
}  // namespace shoal::exchange

// Goal: a gate is open for the versions that have arrived and for no other, whoever waits for which; what was written before it
// opened is seen behind it. And in an exchange: each unit's gate opens for its own iteration, while others still wait.
#include "shoal/exchange/gate.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>

#include "shoal/exchange/exchange.h"
#include "shoal/exchange/planner.h"
#include "shoal/net/inproc.h"

namespace shoal::exchange {
namespace {

TEST(Gate, is_open_for_what_has_arrived) {
  Gate gate;
  EXPECT_TRUE(gate.open_for(0)) << "nothing is waited for before the first iteration";
  EXPECT_FALSE(gate.open_for(1));
  gate.open(1);
  EXPECT_TRUE(gate.open_for(1));
  EXPECT_FALSE(gate.open_for(2)) << "the last version does not pass for the next";
  gate.open(2);
  EXPECT_TRUE(gate.open_for(1));
  EXPECT_TRUE(gate.open_for(2));
}

TEST(Gate, of_a_new_plan_owes_only_what_comes) {
  const Gate gate(7);
  EXPECT_TRUE(gate.open_for(7));
  EXPECT_FALSE(gate.open_for(8));
}

// Each version writes the whole memory; who sees the gate open for it sees all of it. The thread sanitizer watches, too.
TEST(Gate, what_was_written_before_it_opened_is_seen_behind_it) {
  constexpr Gate::Version kVersions = 2000;
  Gate arrived, taken;
  std::array<Gate::Version, 64> memory{};
  std::thread loop([&] {
    for (Gate::Version v = 1; v <= kVersions; ++v) {
      while (!taken.open_for(v - 1)) std::this_thread::yield();
      memory.fill(v);
      arrived.open(v);
    }
  });
  for (Gate::Version v = 1; v <= kVersions; ++v) {
    while (!arrived.open_for(v)) std::this_thread::yield();
    ASSERT_EQ(std::accumulate(memory.begin(), memory.end(), Gate::Version{0}), v * memory.size());
    taken.open(v);
  }
  loop.join();
}

// Two members, two units. The gate of one tensor opens while nobody has produced the other, and what has gone through in one
// iteration does not pass for the next.
TEST(Gate, each_tensor_waits_for_its_own_version) {
  net::InprocJob job(2);
  std::vector<TensorSpec> tensors = {{"shallow", DType::f32, 100'000, 0, -1}, {"deep", DType::f32, 100'000, 1, -1}};
  std::vector<std::unique_ptr<collective::Runner>> runners;
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (net::Rank rank : {0u, 1u}) {
    runners.push_back(std::make_unique<collective::Runner>(job.member(rank), std::vector<net::Rank>{0, 1}));
    exchanges.push_back(std::make_unique<Exchange>(*runners[rank], std::uint16_t{16}, make_plan(tensors, 2, {}), std::chrono::seconds(2)));
  }
  ASSERT_EQ(exchanges[0]->plan().units.size(), 2u);
  for (float step = 1; step <= 3; ++step) {
    const std::vector<float> one(100'000, step), three(100'000, 3 * step);
    exchanges[0]->begin(1);
    exchanges[1]->begin(1);
    exchanges[0]->produced(1, one.data());
    exchanges[1]->produced(1, three.data());
    for (const auto& exchange : exchanges) ASSERT_EQ(static_cast<const float*>(exchange->result(1))[99'999], 2 * step);
    exchanges[0]->produced(0, one.data());
    exchanges[1]->produced(0, three.data());
    for (const auto& exchange : exchanges) ASSERT_EQ(static_cast<const float*>(exchange->result(0))[0], 2 * step);
    for (const auto& exchange : exchanges) exchange->commit();
  }
  // The last mean of "shallow" lies there; an iteration that does not bring it must not pass its gate.
  const std::vector<float> again(100'000, 9);
  for (const auto& exchange : exchanges) {
    exchange->begin(1);
    exchange->produced(1, again.data());
  }
  EXPECT_EQ(static_cast<const float*>(exchanges[0]->result(1))[5], 9);
  EXPECT_THROW(exchanges[0]->result(0), Error);
}

}  // namespace
}  // namespace shoal::exchange

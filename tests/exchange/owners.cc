// Goal: by "owners" every member has the mean of its part alone, with the bits of a direct all-reduce, and after the step everybody has the parts that the owners
// have stepped, even when the next iteration has begun meanwhile. Method: several members in one process on scripted networks with drawn delays. Oracle:
// the same gradients by "direct", and a loop over all elements in place of N loops over parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "shoal/core/event.h"
#include "shoal/exchange/owned_parts.h"
#include "shoal/exchange/planner.h"
#include "shoal/exchange/way.h"
#include "tests/exchange/members.h"
#include "tests/exchange/normal_numbers.h"
#include "tests/refusal.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kOwned = 16'421;  // not a multiple of a block
using Values = std::vector<float>;

ExchangePlan owned_plan(std::uint32_t ranks, const std::string& way) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {{.name = "weight", .count = kOwned, .by_element = true}, {.name = "other", .count = kOwned, .first_use = 1, .by_element = true}};
  plan.units = {{{1}, way, 4096, 0, 0, 0}, {{0}, way, 4096, 1, 0, 0}};
  return plan;
}

Values drawn_values(std::uint64_t seed) { return normal_numbers(kOwned, seed); }

net::ScriptedNetwork slow_network(std::uint64_t seed) { return {.seed = seed, .delay_min = Nanoseconds(1'000), .delay_max = Nanoseconds(5'000'000)}; }

// Parameters of all members, by member and tensor, as three steps of momentum leave them.
std::vector<std::vector<Values>> trained(std::uint32_t ranks, const std::string& way, std::uint64_t timing) {
  Members members(owned_plan(ranks, way), slow_network(timing));
  const bool owned = way_named(way)->owned();
  std::vector<std::vector<Values>> parameters(ranks), moments, given(ranks, std::vector<Values>(2));
  for (auto& of : parameters) of = {drawn_values(1), drawn_values(2)};
  moments.assign(ranks, std::vector<Values>(2, Values(kOwned)));
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<std::vector<Values>> gradients(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      for (const std::uint32_t t : {0u, 1u}) {
        if (owned) members[r].returned(t);  // the forward pass uses it
        gradients[r].push_back(drawn_values(100 * step + 10 * r + t));
        for (std::size_t i = 0; i < kOwned; ++i) gradients[r][t][i] *= parameters[r][t][i];
      }
      members[r].begin(1.0 + r);
      for (const std::uint32_t t : {1u, 0u}) {
        if (r == 1 && t == 1) {
          members[r].absent(t);
        } else {
          members[r].produced(t, gradients[r][t].data());
        }
      }
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const OwnedParts parts{ranks, kOwned};
      for (const std::uint32_t t : {0u, 1u}) {
        const auto* mean = static_cast<const float*>(members[r].result(t));
        const std::uint64_t first = owned ? parts.first(r) : 0, size = owned ? parts.size(r) : kOwned;
        for (std::uint64_t i = 0; i < size; ++i) {
          float& moment = moments[r][t][first + i];
          moment = 0.9F * moment + mean[i];
          parameters[r][t][first + i] -= 0.1F * moment;
        }
        if (!owned) continue;
        const auto* part = parameters[r][t].data() + first;
        given[r][t].assign(part, part + size);
        members[r].give_back(t, given[r][t].data(), parameters[r][t].data());
      }
      members[r].commit();
    }
  }
  for (std::uint32_t r = 0; owned && r < ranks; ++r) {
    for (const std::uint32_t t : {0u, 1u}) members[r].returned(t);
  }
  return parameters;
}

TEST(Owners, steps_in_parts_have_the_bits_of_whole_ones) {
  for (const std::uint32_t ranks : {2u, 3u, 4u}) {
    const auto whole = trained(ranks, "direct", 1);
    for (const std::uint64_t timing : {1, 2, 3}) EXPECT_EQ(trained(ranks, "owners", timing), whole) << ranks << " members, timing " << timing;
  }
}

TEST(Owners, sends_the_bytes_that_it_is_priced_with) {
  for (const std::uint32_t ranks : {2u, 3u, 4u}) {
    Events::local().drain();
    Events::local().enable(true);
    trained(ranks, "owners", 1);
    Events::local().enable(false);
    double sent = 0;
    for (const auto& event : Events::local().drain()) sent += event.kind == EventKind::exchange ? event.value : 0;
    const auto plan = owned_plan(ranks, "owners");
    const Cost cost = way_named("owners")->cost({.first = plan.tensors[0], .count = kOwned, .ranks = ranks, .link = {}});
    EXPECT_NEAR(sent / (3 * 2 * ranks), cost.sent, 0.01 * cost.sent) << ranks;
    EXPECT_GT(cost.link, 0);
    EXPECT_GT(cost.after, 0);
  }
}

TEST(Owners, parts_partition_the_tensor_at_blocks) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{64}, std::uint64_t{130}, kOwned}) {
    for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) {
      const OwnedParts parts{ranks, count};
      std::uint64_t next = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(parts.first(rank), next);
        EXPECT_TRUE(next % OwnedParts::kBlock == 0 || next == count);
        next += parts.size(rank);
      }
      EXPECT_EQ(next, count);
    }
  }
}

// A member steps its parts alone; the others' come back in the order of the forward pass, and hide behind what of it comes before their use.
TEST(Owners, is_foreseen_with_a_part_of_the_step_and_what_does_not_hide_of_the_way_back) {
  constexpr std::uint32_t kRanks = 4;
  const collective::LinkModel link{.alpha = 0, .rate = 1e6};
  const auto plan_of = [&](double forward_at) {
    std::vector<TensorSpec> tensors = owned_plan(kRanks, "owners").tensors;
    for (auto& tensor : tensors) tensor.backward_at = 0, tensor.forward_at = tensor.first_use * forward_at;
    return make_plan(tensors, kRanks, link, {.forward_seconds = 1, .backward_seconds = 1, .step_seconds = 0.4}, parse_choice("owners", "test"));
  };
  const TensorSpec tensor = owned_plan(kRanks, "owners").tensors[0];
  const Load load{.first = tensor, .count = kOwned, .ranks = kRanks, .link = link};
  const Cost cost = way_named("owners")->cost(load);
  const auto at_once = plan_of(0), hidden = plan_of(0.5);
  EXPECT_NEAR(at_once.stepping_seconds(), 0.1, 1e-9);
  EXPECT_NEAR(at_once.predicted_exposed() - hidden.predicted_exposed(), cost.after, 1e-9);  // the second tensor's, whose use is late
  EXPECT_NEAR(hidden.predicted_seconds(), 2.1 + hidden.predicted_exposed(), 1e-9);
}

TEST(Owners, refuses_a_part_of_what_members_step_whole) {
  Members members(owned_plan(2, "direct"), slow_network(7));
  Values part(kOwned), parameter(kOwned);
  EXPECT_EQ(refusal([&] { members[0].give_back(0, part.data(), parameter.data()); }, Code::internal),
            "weight: a part is given back of what members step whole, by direct");
}

// Whoever closes while parts are under way leaves nothing behind that refers to memory of its own.
TEST(Owners, ends_what_is_on_its_way_back) {
  Members members(owned_plan(2, "owners"), slow_network(7));
  const Values gradient(kOwned, 1);
  std::vector<Values> parameter(2, Values(kOwned)), part(2, Values(kOwned));
  for (std::uint32_t r = 0; r < 2; ++r) {
    members[r].begin(1);
    for (const std::uint32_t t : {1u, 0u}) members[r].produced(t, gradient.data());
  }
  for (std::uint32_t r = 0; r < 2; ++r) members[r].settle();
  members[0].give_back(0, part[0].data(), parameter[0].data());
  for (std::uint32_t r = 0; r < 2; ++r) members[r].commit();
  members.leave(0);
  members.leave(1);
}

}  // namespace
}  // namespace shoal::exchange

// Goal: a plan is fitted anew when what training waits for has changed for good, and not else; the fit changes no bit.
#include "shoal/exchange/drift.h"

#include <gtest/gtest.h>

#include "shoal/collective/build.h"
#include "shoal/collective/hosts.h"
#include "shoal/exchange/planner.h"

namespace shoal::exchange {
namespace {

// Iterations until it asks for a fit, of so many at most; each waits `waited(i)`.
template <class Waited>
int iterations_until(Drift& drift, int most, Waited waited) {
  for (int i = 0; i < most; ++i) {
    if (drift.after(waited(i))) return i + 1;
  }
  return most;
}
constexpr int kWindow = Drift::kWindow;
constexpr int kLong = 100 * kWindow;

TEST(Drift, what_stays_as_it_is_is_left_alone) {
  Drift drift(1.0);
  EXPECT_EQ(iterations_until(drift, kLong, [](int) { return 0.5; }), kLong);
}

TEST(Drift, what_changes_for_good_is_followed_after_two_windows_in_either_direction) {
  for (const double later : {0.8, 0.2}) {
    Drift drift(1.0);
    EXPECT_EQ(iterations_until(drift, kLong, [&](int i) { return i < 3 * kWindow ? 0.5 : later; }), 5 * kWindow) << later;
  }
}

TEST(Drift, what_is_small_against_an_iteration_is_no_drift) {
  Drift drift(1.0);
  EXPECT_EQ(iterations_until(drift, kLong, [](int i) { return i < kWindow ? 0.01 : 0.19; }), kLong);
}

TEST(Drift, single_late_iterations_and_what_comes_and_goes_are_no_drift) {
  Drift drift(1.0);
  EXPECT_EQ(iterations_until(drift, kLong, [](int i) { return i % 3 == 0 ? 50.0 : 0.5; }), kLong) << "a third of them are very late";
  Drift swings(1.0);
  EXPECT_EQ(iterations_until(swings, kLong, [](int i) { return i / kWindow % 2 == 0 ? 0.5 : 1.5; }), kLong) << "every other window";
  Drift both(1.0);
  EXPECT_EQ(iterations_until(both, kLong, [](int i) { return i < kWindow ? 1.0 : i / kWindow % 2 == 0 ? 0.1 : 2.0; }), kLong) << "above, below";
}

TEST(Drift, each_fit_makes_it_more_patient) {
  Drift drift(1.0);
  int windows = 2;
  for (int fit = 0; fit < 8; ++fit) {
    // The first window is what the plan is like now; then it has changed.
    EXPECT_EQ(iterations_until(drift, kLong, [](int i) { return i < kWindow ? 0.5 : 2.0; }), (1 + windows) * kWindow) << fit;
    drift.fitted();
    windows = std::min(2 * windows, Drift::kMostPatience);
  }
}

std::vector<TensorSpec> tensors() {
  std::vector<TensorSpec> all;
  for (std::uint32_t t = 0; t < 6; ++t) all.push_back({"t" + std::to_string(t), DType::f32, 1000u << (2 * t), t, 0.01 * (6 - t)});
  return all;
}

// On `near` flows that meet are quick and direct wins; on `far` they are slow, each step is cheap, and only a chain adds in rank order as well.
TEST(Drift, a_fitted_plan_has_the_same_units_and_adds_in_the_same_order) {
  const collective::LinkModel near{100e-6, 1e8, 8e9, 2e8}, far{1e-6, 1e8, 8e9, 1e6};
  const auto plan = make_plan(tensors(), 4, near, {0.05, 0.1});
  const auto fitted = fitted_to(plan, far);
  ASSERT_EQ(fitted.units.size(), plan.units.size());
  int changed = 0;
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    EXPECT_EQ(fitted.units[u].tensors, plan.units[u].tensors);
    const auto order = [](const Unit& unit) { return collective::build(collective::Collective::all_reduce, unit.way, 4).order; };
    EXPECT_EQ(order(fitted.units[u]), order(plan.units[u]));
    changed += fitted.units[u].way != plan.units[u].way;
  }
  EXPECT_GT(changed, 0);
  EXPECT_LT(fitted.predicted_seconds(), priced_on(plan, far).predicted_seconds());
}

// A fold of these rounds once, a chain at each step: the same order, and other bits.
TEST(Drift, half_floats_keep_their_way) {
  const collective::LinkModel near{100e-6, 1e8, 8e9, 2e8}, far{1e-6, 1e8, 8e9, 1e6};
  for (const DType type : {DType::f16, DType::bf16}) {
    auto all = tensors();
    for (TensorSpec& tensor : all) tensor.type = type;
    const auto plan = make_plan(all, 4, near, {0.05, 0.1});
    const auto fitted = fitted_to(plan, far);
    for (std::size_t u = 0; u < plan.units.size(); ++u) EXPECT_EQ(fitted.units[u].way, plan.units[u].way);
  }
}

// The rest that no pair explains is all-reduced by a program that the plan's link suggests: its bits must not follow another link.
TEST(Drift, ways_of_several_parts_keep_the_link_that_they_chose_their_programs_by) {
  auto all = tensors();
  all[5].rows = 4;
  all[5].outputs = 1000;
  const collective::LinkModel near{100e-6, 1e7, 8e9, 2e7}, far{1e-6, 1e8, 8e9, 1e6};
  const auto plan = make_plan(all, 4, near, {0.05, 0.1, 40e9});
  ASSERT_EQ(plan.units.front().way, kByFactors);
  EXPECT_EQ(fitted_to(plan, far).link.rate, near.rate);
  EXPECT_EQ(fitted_to(make_plan(tensors(), 4, near, {0.05, 0.1}), far).link.rate, far.rate);
}

TEST(Drift, what_was_chosen_by_hand_or_adds_otherwise_stays) {
  const collective::LinkModel far{1e-6, 1e8, 8e9, 1e6};
  for (const char* choice : {"direct", "ring", "auto,t*=direct", "auto,t*=ring"}) {
    const auto plan = make_plan(tensors(), 4, {}, {0.05, 0.1}, parse_choice(choice, "test"));
    const auto fitted = fitted_to(plan, far);
    for (std::size_t u = 0; u < plan.units.size(); ++u) EXPECT_EQ(fitted.units[u].way, plan.units[u].way) << choice;
  }
}

// Trees add in an order of their own: their bits must not follow the links. What they cost does.
TEST(Drift, what_was_made_for_the_network_stays) {
  collective::LinkModel link{.alpha = 100e-6, .rate = 25e6};
  link.network = collective::KnownNetwork::made_for(collective::network_of({0, 0, 0, 1, 1, 1}, 1e9, 25e6));
  for (const char* choice : {"auto", "auto,t5=trees"}) {
    const auto plan = make_plan(tensors(), 6, link, {0.05, 0.1}, parse_choice(choice, "test"));
    const auto made = [](const Unit& unit) { return collective::is_of_network(unit.way); };
    ASSERT_TRUE(std::any_of(plan.units.begin(), plan.units.end(), made)) << choice;
    collective::LinkModel now = link;
    now.network = link.network->measured_anew(collective::network_of({0, 0, 0, 1, 1, 1}, 1e9, 5e6));
    const auto fitted = fitted_to(plan, now);
    EXPECT_EQ(fitted.link.network, now.network);
    EXPECT_GT(fitted.predicted_seconds(), plan.predicted_seconds());
    for (std::size_t u = 0; u < plan.units.size(); ++u) {
      if (!made(plan.units[u])) continue;
      EXPECT_EQ(fitted.units[u].way, plan.units[u].way) << choice;
    }
  }
}

}  // namespace
}  // namespace shoal::exchange

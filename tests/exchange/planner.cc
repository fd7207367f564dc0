// Goal: a plan is what its choice says, and "auto" is predicted to be no slower than any other choice.
#include "shoal/exchange/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "shoal/core/error.h"
#include "shoal/exchange/plan_price.h"

namespace shoal::exchange {
namespace {

const collective::LinkModel kPlannedLink{100e-6, 25e6, 8e9};
constexpr Compute kCompute{0.1, 0.2, 40e9};

// Eight layers of 256 x 256, one of them without rows and 3 MB large; forward can wait before each where `gates`.
constexpr std::size_t kLarge = 4;
std::vector<TensorSpec> layers(bool gates) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t l = 0; l < 8; ++l) {
    const double at = 0.1 * l / 8;
    const std::uint64_t count = l == kLarge ? 786'432 : 65'536;
    tensors.push_back({"layer" + std::to_string(l) + ".weight", DType::f32, count, l, 0.2 - 2 * at, 64, 256, gates ? at : -1});
  }
  tensors[kLarge].rows = 0;
  return tensors;
}

ExchangePlan plan_by(const std::string& choice, bool gates = true, const collective::LinkModel& link = kPlannedLink) {
  return make_plan(layers(gates), 4, link, kCompute, parse_choice(choice, "--plan"));
}

std::vector<std::string> ways_of(const ExchangePlan& plan) {
  std::vector<std::string> ways(plan.tensors.size());
  for (const auto& unit : plan.units) {
    for (auto t : unit.tensors) ways[t] = unit.way;
  }
  return ways;
}

TEST(Planner, a_way_is_everybodys_but_for_overrides) {
  EXPECT_THAT(ways_of(plan_by("ring")), testing::Each("ring"));
  const auto ways = ways_of(plan_by("ring,layer?.weight=chain,layer7*=factors,layer4*=factors"));
  EXPECT_EQ(ways[7], kByFactors);
  EXPECT_EQ(ways[1], "chain");
  EXPECT_THAT(ways[kLarge], testing::Ne(kByFactors)) << "it has no rows, so no factors";
}

TEST(Planner, tensors_of_different_ways_are_not_packed_together) {
  const auto plan = plan_by("ring,layer3*=direct,layer5*=direct");
  for (const auto& unit : plan.units) {
    for (auto t : unit.tensors) EXPECT_EQ(unit.way, t == 3 || t == 5 ? "direct" : "ring");
  }
}

TEST(Planner, fragments_are_neighbours_of_about_equal_bytes_and_never_packed_together) {
  const auto plan = plan_by("diloco:16:4");
  std::vector<std::uint32_t> turn_of(plan.tensors.size());
  std::vector<double> bytes(plan.turns());
  for (const auto& unit : plan.units) {
    for (auto t : unit.tensors) turn_of[t] = unit.turn;
    bytes[unit.turn] += static_cast<double>(plan.bytes_of(unit));
  }
  EXPECT_TRUE(std::is_sorted(turn_of.begin(), turn_of.end()));
  EXPECT_THAT(bytes, testing::Each(testing::Gt(0)));
  const double whole = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  for (const double of_one : bytes) EXPECT_LE(of_one, std::max(4.0 * 786'432, 2 * whole / 4));  // the largest tensor, or near its share
  EXPECT_EQ(plan_by("local:16").turns(), 1u);
}

TEST(Planner, differences_of_parameters_go_whole_and_hide_behind_nothing) {
  for (const char* choice : {"local:8", "diloco:8:2"}) {
    const auto plan = plan_by(choice);
    EXPECT_THAT(ways_of(plan), testing::Each(testing::Ne(kByFactors)));
    double free = 0, arrived = 0;  // of the link; the last unit
    for (const auto& unit : plan.units) {
      arrived = std::max(arrived, free + unit.predicted_seconds);
      free += unit.predicted_seconds - cost_of(plan, unit).latency;
    }
    EXPECT_DOUBLE_EQ(plan.predicted_seconds(), arrived) << choice;
  }
}

TEST(Planner, an_override_that_names_no_tensor_is_refused) {
  try {
    plan_by("auto,layer*=ring,fc9*=ring");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "plan: \"fc9*\" matches no tensor of the model (its tensors have names like layer0.weight)");
  }
}

TEST(Planner, poseidon_goes_by_bytes_alone) {
  const collective::LinkModel fast{1e-6, 1e12, 8e9};
  const auto ways = ways_of(plan_by("poseidon", true, fast));
  for (std::size_t t = 0; t < ways.size(); ++t) {
    const auto tensor = layers(true)[t];
    EXPECT_EQ(ways[t] == kByFactors, tensor.rows > 0 && factor::fewer_numbers(tensor.layer(), tensor.rows, 4)) << t;
  }
  EXPECT_THAT(ways, testing::Contains(kByFactors));
  EXPECT_THAT(ways_of(plan_by("auto", true, fast)), testing::Not(testing::Contains(kByFactors)));
}

TEST(Planner, p3_cuts_slices_and_waits_layer_by_layer_where_it_can) {
  const auto plan = plan_by("p3");
  EXPECT_EQ(plan.order, Order::priority);
  for (const auto& unit : plan.units) {
    const auto bytes = static_cast<double>(plan.bytes_of(unit));
    EXPECT_EQ(unit.slice_bytes, collective::slice_bytes(collective::Collective::all_reduce, unit.way, 4, bytes, kPlannedLink));
    for (auto t : unit.tensors) EXPECT_LE(unit.priority, plan.tensors[t].first_use);
  }
  EXPECT_EQ(plan_by("p3:6400").units.back().slice_bytes, 6400u);
  EXPECT_EQ(plan_by("p3", false).order, Order::fifo) << "nobody can wait in forward";
}

TEST(Planner, in_order_of_production_what_is_ready_first_leaves_first) {
  for (const char* choice : {"wfbp", "ddp", "poseidon"}) {
    const auto plan = plan_by(choice);
    EXPECT_EQ(plan.order, Order::fifo);
    for (std::uint32_t u = 0; u < plan.units.size(); ++u) EXPECT_EQ(plan.units[u].priority, u);
  }
}

// DistributedDataParallel closes a bucket when it has reached its limit: 1 MiB the first time.
TEST(Planner, ddp_has_its_buckets) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t t = 0; t < 10; ++t) tensors.push_back({"t" + std::to_string(t), DType::f32, 150'000, t, 0.01 * (10 - t)});  // 0.6 MB each
  const auto plan = make_plan(tensors, 4, kPlannedLink, {0.1, 0.2}, parse_choice("ddp:2MB", "--plan"));
  std::vector<std::vector<std::uint32_t>> buckets;
  for (const auto& unit : plan.units) buckets.push_back(unit.tensors);
  EXPECT_EQ(buckets, (std::vector<std::vector<std::uint32_t>>{{9, 8}, {7, 6, 5, 4}, {3, 2, 1, 0}}));
}

// Only where it is foreseen to gain 1 % of what is computed, or, where members share cores, 4 %, and what stepping each parameter by itself costs: that takes processor
// time that the play does not see.
TEST(Planner, forward_waits_layer_by_layer_where_that_is_shorter_by_enough) {
  const auto with_forward = [](double forward, const char* choice, bool crowded = false, double parameter_seconds = kCompute.parameter_seconds) {
    std::vector<TensorSpec> tensors;
    for (std::uint32_t l = 0; l < 16; ++l) {
      const double before = l / 16.0;
      tensors.push_back({"layer" + std::to_string(l), DType::f32, 200'000, l, 0.2 * (1 - before), 0, 0, forward * before});
    }
    Compute compute = kCompute;
    compute.forward_seconds = forward;
    compute.crowded = crowded;
    compute.parameter_seconds = parameter_seconds;
    return make_plan(tensors, 4, kPlannedLink, compute, parse_choice(choice, "--plan"));
  };
  for (const bool crowded : {false, true}) {
    int chosen = 0;
    for (const double forward : {0.005, 0.01, 0.02, 0.04, 0.1, 0.2, 0.3, 0.4}) {
      const double whole = with_forward(forward, "wfbp,*=ring").predicted_seconds();
      const double computed = forward + kCompute.backward_seconds;
      const double gain = (whole - with_forward(forward, "p3,*=ring").predicted_seconds()) / computed;
      const double least = (crowded ? 0.04 : 0.01) + 16 * kCompute.parameter_seconds / computed;
      const double margin = 0.02 * whole / computed;  // half a percent is no reason for another packing, in each search
      const bool by_parameter = with_forward(forward, "auto,*=ring", crowded).order == Order::priority;
      if (gain > least + margin) {
        EXPECT_TRUE(by_parameter) << forward;
      }
      if (gain < least - margin) {
        EXPECT_FALSE(by_parameter) << forward << " " << gain << " " << crowded;
      }
      chosen += by_parameter;
      EXPECT_EQ(with_forward(forward, "auto,*=ring", crowded, 0.1).order, Order::fifo) << "16 parameters take longer than all else";
    }
    EXPECT_GT(chosen, 0);
    EXPECT_LT(chosen, 8);
  }
  EXPECT_EQ(plan_by("auto,*=ring", false).order, Order::fifo);
  const collective::LinkModel fast{1e-9, 1e12, 1e15};
  EXPECT_EQ(plan_by("auto", true, fast).order, Order::fifo) << "nothing to gain";
  EXPECT_LT(plan_by("p3").predicted_seconds(), plan_by("wfbp").predicted_seconds());
}

// The optimizer's step is part of an iteration: at a barrier after all means, else each parameter's after its own, where waiting hides some.
TEST(Planner, the_optimizers_step_is_foreseen) {
  Compute compute = kCompute;
  compute.step_seconds = 0.07;
  for (const char* choice : {"wfbp", "p3", "auto"}) {
    const auto without = plan_by(choice), with = make_plan(layers(true), 4, kPlannedLink, compute, parse_choice(choice, "--plan"));
    for (const auto& unit : with.units) EXPECT_GE(unit.predicted_exposed, 0) << with.name_of(unit);
    EXPECT_LE(with.predicted_seconds(), without.predicted_seconds() + 0.07 + 1e-9) << choice;
    EXPECT_GE(with.predicted_seconds(), without.predicted_seconds() - 1e-9) << choice;
  }
  const auto barrier = make_plan(layers(true), 4, kPlannedLink, compute, parse_choice("wfbp", "--plan"));
  EXPECT_NEAR(barrier.predicted_seconds(), plan_by("wfbp").predicted_seconds() + 0.07, 1e-9);
}

// While the layer that comes last is on its way, products of the one that came first cost a member no time of its own, and its own product leaves the backward pass.
// Where several members share cores that are never idle, the others' products take the time of who computes meanwhile.
TEST(Planner, products_that_waits_hide_cost_time_where_cores_are_crowded) {
  const std::vector<TensorSpec> tensors{{"trunk.weight", DType::f32, 4'000'000, 0, 0.2, 0, 0, 0},
                                        {"output.weight", DType::f32, 1'000'000, 1, 0.02, 100, 1000, 0.09}};
  const auto way_of_output = [&](bool crowded, double multiply_rate) {
    Compute compute = kCompute;
    compute.own_rate = 10e9;
    compute.multiply_rate = multiply_rate;
    compute.crowded = crowded;
    compute.processor_seconds = 0.4;
    return ways_of(make_plan(tensors, 4, {100e-6, 125e6, 8e9}, compute, parse_choice("auto", "--plan")))[1];
  };
  EXPECT_EQ(way_of_output(false, 10e9), kByFactors);
  EXPECT_NE(way_of_output(true, 10e9), kByFactors) << "0.8 of the 60 ms of others' products for 20 ms of its own";
  EXPECT_EQ(way_of_output(true, 1e12), kByFactors) << "they take less than what they save";
}

// Where members share cores each operation takes of them what hides behind nothing: few large units, however well small ones would hide.
TEST(Planner, operations_that_cost_processor_time_are_fewer) {
  const collective::LinkModel kFast{10e-6, 10e9, 80e9};
  const auto by = [&](double operation_seconds, const char* choice) {
    Compute compute = kCompute;
    compute.operation_seconds = operation_seconds;
    return make_plan(layers(false), 4, kFast, compute, parse_choice(choice, "--plan"));
  };
  const auto free = by(0, "wfbp"), paid = by(4e-3, "wfbp"), little = by(1e-4, "wfbp");
  EXPECT_EQ(free.units.size(), 8u);
  EXPECT_LE(paid.units.size(), 2u);
  EXPECT_LT(little.units.size(), 8u) << "less than half a percent, but certain";
  EXPECT_LT(little.predicted_seconds(), by(1e-4, "ddp:100KB").predicted_seconds());
  EXPECT_NEAR(by(4e-3, "ddp:25MB").predicted_seconds(), by(0, "ddp:25MB").predicted_seconds() + 4e-3 * static_cast<double>(by(0, "ddp:25MB").units.size()), 1e-9);
  const auto measured = settled(paid, {0.1, 0.2, 0});
  EXPECT_DOUBLE_EQ(measured.predicted_seconds(), 0.1 + 0.2 + measured.predicted_exposed()) << "the passes have it then";
  EXPECT_EQ(to_json(plan_from_json(to_json(paid), "test")), to_json(paid));
}

// By priority, on links that are full, gradients go by rings, in which each link has one sender, who keeps the order: unless a ring's messages cost time of cores
// that members share, or somebody says how.
TEST(Planner, by_priority_rings_keep_the_order_on_full_links) {
  const collective::LinkModel full{100e-6, 5e6, 8e9}, quick{100e-6, 125e8, 8e10};
  const auto rings = [](const collective::LinkModel& link, const char* choice, double operation_seconds = 0, std::uint32_t members = 4) {
    Compute compute = kCompute;
    compute.operation_seconds = operation_seconds;
    const auto plan = make_plan(layers(true), members, link, compute, parse_choice(choice, "--plan"));
    return std::ranges::count_if(plan.units, [](const Unit& unit) { return unit.way == kByRing; });
  };
  EXPECT_GT(rings(full, "p3"), 0);
  EXPECT_EQ(rings(full, "p3", 1e-4), 0);
  EXPECT_EQ(rings(full, "p3,*=direct"), 0);
  EXPECT_EQ(rings(full, "p3", 0, 2), 0) << "one sender, whatever the program";
  EXPECT_EQ(rings(full, "wfbp"), 0);
  EXPECT_EQ(rings(quick, "p3"), 0) << "nothing waits";
}

// Several units are under way by priority: where a program has more than one sender for a link, bytes come at the rate of several senders to one.
TEST(Planner, by_priority_senders_meet_at_links) {
  const collective::LinkModel alike{.alpha = 100e-6, .rate = 1e6, .add_rate = 8e9};
  auto crowded = alike;
  crowded.fan_in = 0.8 * alike.rate;
  const auto longer = [&](const char* choice, double operation_seconds = 0, std::uint32_t members = 4) {
    Compute compute = kCompute;
    compute.operation_seconds = operation_seconds;
    const auto seconds = [&](const auto& link) { return make_plan(layers(true), members, link, compute, parse_choice(choice, "--plan")).predicted_seconds(); };
    return seconds(crowded) / seconds(alike);
  };
  EXPECT_NEAR(longer("p3,*=halving_doubling"), 1.25, 0.02);
  for (const char* choice : {"p3,*=ring", "wfbp,*=halving_doubling"}) EXPECT_DOUBLE_EQ(longer(choice), 1) << choice;
  EXPECT_DOUBLE_EQ(longer("p3,*=halving_doubling", 0, 2), 1) << "one sender";
  EXPECT_DOUBLE_EQ(longer("p3,*=halving_doubling", 1e-4), 1) << "what members that share cores lose, order must earn";
}

TEST(Planner, the_choice_is_in_the_plan) { EXPECT_EQ(plan_by("wfbp,layer1*=ring").choice, "wfbp,layer1*=ring"); }

// One fully connected layer that members may divide, on links so slow that nothing else counts.
std::string way_of_a_layer(std::uint64_t inputs, std::uint64_t outputs, std::uint64_t rows, std::uint32_t members, const std::string& choice = "auto",
                           bool divisible = true) {
  const collective::LinkModel slow{0, 1e6, 1e18};
  const std::vector<TensorSpec> layer = {{.name = "fc.weight", .count = inputs * outputs, .backward_at = 1e-9, .rows = rows, .outputs = outputs,
                                          .forward_at = 0, .divisible = divisible}};
  return make_plan(layer, members, slow, {1e-9, 1e-9}, parse_choice(choice, "--plan")).units.front().way;
}

// Das et al., section 3: a member that sends and receives gradients in turn gains by sharing a layer where outputs > minibatch, and G groups are
// best near sqrt(N minibatch / outputs); of the numbers that divide N, that is.
TEST(Planner, a_layer_is_divided_where_the_balance_equations_say) {
  for (const std::uint64_t outputs : {256, 512}) {
    EXPECT_EQ(way_of_a_layer(1 << 16, outputs, outputs / 2 * 8 / 10, 2), "hybrid:1") << outputs;  // a minibatch of 0.8 outputs
    EXPECT_THAT(way_of_a_layer(1 << 16, outputs, outputs / 2 * 11 / 10, 2), testing::Not(testing::StartsWith("hybrid"))) << outputs;
  }
  EXPECT_EQ(way_of_a_layer(4096, 4096, 256 / 64, 64), "hybrid:2") << "their example: 2.0";
  EXPECT_EQ(way_of_a_layer(4096, 4096, 1024 / 64, 64), "hybrid:4") << "sqrt(64 * 1024 / 4096) = 4";
  EXPECT_EQ(way_of_a_layer(4096, 4096, 4096 / 64, 64), "hybrid:8") << "8";
}

TEST(Planner, a_layer_is_divided_only_where_it_may_be_and_nobody_says_otherwise) {
  const auto whole = testing::Not(testing::StartsWith("hybrid"));
  EXPECT_THAT(way_of_a_layer(4096, 4096, 4, 64, "auto", false), whole);
  for (const char* choice : {"wfbp", "p3", "poseidon", "auto,fc*=ring"}) EXPECT_THAT(way_of_a_layer(4096, 4096, 4, 64, choice), whole) << choice;
  auto tensors = layers(true);
  for (auto& tensor : tensors) tensor.divisible = true;
  const collective::LinkModel fast{1e-6, 1e12, 8e9};
  EXPECT_THAT(ways_of(make_plan(tensors, 4, fast, kCompute)), testing::Each(whole)) << "nothing to gain";
  EXPECT_THAT(ways_of(make_plan(tensors, 4, kPlannedLink)), testing::Each(whole)) << "nothing was measured";
}

TEST(Planner, a_plan_that_divides_layers_leaves_in_order_of_production) {
  auto tensors = layers(true);
  for (auto& tensor : tensors) tensor.divisible = tensor.rows > 0, tensor.rows /= 16;
  const auto plan = make_plan(tensors, 4, {1e-6, 1e6, 8e9}, {0.1, 0.2});  // no rate of products: no factors
  EXPECT_THAT(ways_of(plan), testing::Contains(testing::StartsWith("hybrid")));
  EXPECT_EQ(plan.order, Order::fifo);
}

TEST(Planner, auto_is_predicted_to_be_no_slower_than_any_other_choice) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> size(11, 2), rate(17, 2);
  for (int i = 0; i < 40; ++i) {
    std::vector<TensorSpec> tensors;
    const auto count = std::uniform_int_distribution<std::uint32_t>(2, 24)(random);
    for (std::uint32_t t = 0; t < count; ++t) {
      const auto outputs = std::uint64_t{1} << std::uniform_int_distribution<int>(0, 8)(random);
      const auto inputs = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::min(size(random), 1e7)) / outputs);
      const bool linear = t % 2 == 0;
      tensors.push_back({"t" + std::to_string(t), DType::f32, inputs * outputs, t, 0.2 * (count - t) / count, linear ? 32u : 0u,
                         linear ? outputs : 0u, 0.1 * t / count});
      tensors.back().divisible = linear && i % 2 == 0;
    }
    const collective::LinkModel link{50e-6, rate(random), 8e9};
    const auto seconds = [&](const std::string& choice) {
      return make_plan(tensors, 4, link, kCompute, parse_choice(choice, "--plan")).predicted_seconds();
    };
    const double best = seconds("auto");
    // The planner passes over what gains less than 0.5 %, divided layers that gain less than a tenth, and steps by parameter that gain less than 3 % of what is computed.
    for (const char* by_parameter : {"p3", "ring", "direct"}) EXPECT_LE(best, seconds(by_parameter) * 1.042) << by_parameter << ' ' << i;
    for (const char* other : {"wfbp", "poseidon", "ddp", "ddp:1MB", "wfbp,*=ring", "wfbp,*=direct"}) {
      EXPECT_LE(best, seconds(other) * 1.011) << other << ' ' << i;
    }
    for (const char* divided : {"hybrid:1", "hybrid:2"}) EXPECT_LE(best, seconds(divided) * 1.112) << divided << ' ' << i;
  }
}

}  // namespace
}  // namespace shoal::exchange

// Goal: a plan packs what an operation's cost outweighs, predicts what backward does not hide, and survives its file.
#include "shoal/exchange/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "shoal/collective/hosts.h"
#include "shoal/core/error.h"
#include "shoal/exchange/plan_price.h"
#include "shoal/exchange/planner.h"
#include "shoal/topo/generate.h"

namespace shoal::exchange {
namespace {

const collective::LinkModel kLink{100e-6, 25e6, 8e9};

std::vector<TensorSpec> fcnet() {
  const std::vector<std::pair<std::string, std::uint64_t>> sizes = {
      {"conv1.weight", 144},    {"conv1.bias", 16},  {"conv2.weight", 4608},    {"conv2.bias", 32}, {"conv3.weight", 9216}, {"conv3.bias", 32},
      {"fc1.weight", 3211264},  {"fc1.bias", 2048},  {"fc2.weight", 4194304},   {"fc2.bias", 2048}, {"fc3.weight", 20480},  {"fc3.bias", 10}};
  std::vector<TensorSpec> tensors;
  for (const auto& [name, count] : sizes) tensors.push_back({name, DType::f32, count, static_cast<std::uint32_t>(tensors.size()), -1});
  return tensors;
}

TEST(Plan, every_tensor_is_in_one_unit_and_large_ones_travel_alone) {
  const auto plan = make_plan(fcnet(), 4, kLink);
  std::vector<int> seen(plan.tensors.size());
  for (const auto& unit : plan.units) {
    for (auto t : unit.tensors) ++seen[t];
    const bool large = std::any_of(unit.tensors.begin(), unit.tensors.end(), [&](auto t) { return plan.tensors[t].count > 1'000'000; });
    if (large) {
      EXPECT_EQ(unit.tensors.size(), 1u);
    }
  }
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_LT(plan.units.size(), plan.tensors.size());
  // Backward produces the last layer first: tensors stand in that order in their unit, and units in the order of completion.
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    EXPECT_TRUE(std::is_sorted(plan.units[u].tensors.rbegin(), plan.units[u].tensors.rend()));
    if (u > 0) {
      EXPECT_LT(plan.units[u].tensors.back(), plan.units[u - 1].tensors.back());
    }
  }
}

TEST(Plan, types_are_not_mixed_in_a_unit) {
  auto tensors = fcnet();
  for (std::size_t i = 0; i < tensors.size(); i += 2) tensors[i].type = DType::f64;
  const auto plan = make_plan(tensors, 2, kLink);
  for (const auto& unit : plan.units) {
    for (auto t : unit.tensors) EXPECT_EQ(plan.tensors[t].type, plan.tensors[unit.tensors[0]].type);
  }
}

// Exposed time is what lies behind the end of backward: with one slow link the units follow each other without a gap, so
// the whole is the sum of the units' times, less what backward hides and the steps' latencies that hide behind the next unit's bytes.
TEST(Plan, exposed_time_follows_the_closed_form) {
  auto tensors = fcnet();
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].backward_at = 0.001 * static_cast<double>(tensors.size() - i);
  const double backward = 0.0125;
  const auto plan = make_plan(tensors, 4, kLink, {0.006, backward});
  double link_free = 0, arrived = 0, exposed = 0;
  for (const auto& unit : plan.units) {
    double ready = 0;
    for (auto t : unit.tensors) ready = std::max(ready, plan.tensors[t].backward_at);
    const double begin = std::max(ready, link_free);
    const double there = begin + unit.predicted_seconds;
    exposed += std::max(0.0, there - std::max(arrived, backward));
    arrived = std::max(arrived, there);
    link_free = there - cost_of(plan, unit).latency;
  }
  EXPECT_DOUBLE_EQ(plan.predicted_exposed(), exposed);
  const double bytes = 7'444'202 * 4.0;
  EXPECT_NEAR(plan.predicted_exposed(), 1.5 * bytes / kLink.rate - backward, 0.05 * 1.5 * bytes / kLink.rate);
}

// What a plan was chosen by is not what its iterations take. Settled, the passes are what was measured in them, arithmetic for units included, and only
// waiting is foreseen: here one unit on the link from the end of backward, so that an iteration is passes and link end to end.
TEST(Plan, a_settled_plan_predicts_from_its_own_iterations_and_stays_the_same_plan) {
  std::vector<TensorSpec> tensors = {{"fc.weight", DType::f32, 1 << 20, 0, 0.010}};
  tensors[0].rows = 32;
  tensors[0].outputs = 1024;
  const auto chosen = make_plan(tensors, 4, kLink, {0.005, 0.010, 1e9, 0.002}, parse_choice("factors", "test"));
  ASSERT_EQ(chosen.units.at(0).way, "factors");
  const double product = 2.0 * 3 * 32 * (1 << 20) / 1e9;  // of the others' rows: the own one takes the place of the gradient's
  EXPECT_GT(chosen.predicted_exposed(), product);
  const auto now = settled(chosen, {0.004, 0.006, 0.3});
  const double link = now.units[0].predicted_exposed;
  EXPECT_DOUBLE_EQ(now.predicted_seconds(), 0.004 + 0.006 + 0.3 + link);
  EXPECT_NEAR(link, chosen.predicted_exposed() - product, 1e-9);  // multiplying is in the 0.3
  EXPECT_DOUBLE_EQ(now.tensors[0].backward_at, 0.006);
  EXPECT_DOUBLE_EQ(settled(chosen, {0.004, 0.006, 0.3}, std::array{0.25}).tensors[0].backward_at, 0.0015) << "no product before it any more";
  EXPECT_EQ(now.hash(), chosen.hash());
  EXPECT_EQ(to_json(plan_from_json(to_json(now), "test")), to_json(now));
  EXPECT_TRUE(plan_from_json(to_json(now), "test").settled);
  EXPECT_DOUBLE_EQ(priced_on(now, kLink).predicted_seconds(), now.predicted_seconds());
  const auto crowded = settled(chosen, {0.004, 0.006, 0.3, 2.5});  // its members share cores, and compute for so long in all
  EXPECT_EQ(crowded.predicted_seconds(), 2.5);
  EXPECT_EQ(crowded.predicted_exposed(), now.predicted_exposed());
  EXPECT_EQ(to_json(plan_from_json(to_json(crowded), "test")), to_json(crowded));
  EXPECT_EQ(for_members(without_factors(crowded), 4, nullptr).processor_seconds, 0) << "other arithmetic";
  const auto ring = settled(make_plan(tensors, 4, kLink, {0.005, 0.010, 1e9, 0.002}, parse_choice("ring", "test")), {0.004, 0.006, 0.3, 2.5});
  EXPECT_EQ(for_members(ring, 4, nullptr).processor_seconds, 2.5);
  EXPECT_EQ(for_members(ring, 3, nullptr).processor_seconds, 0) << "others on those cores";
  auto charged = chosen;
  charged.operation_seconds = 0.5;
  EXPECT_EQ(for_members(charged, 3, nullptr).operation_seconds, 0) << "others on those cores";
  EXPECT_EQ(without_factors(charged).operation_seconds, 0.5);
  EXPECT_EQ(without_factors(settled(charged, {0.004, 0.006, 0.3})).operating_seconds(), 0) << "measured passes have it";
}

// A backward pass in which whole gradients were multiplied is shorter by a layer's own product where its factors go, and what comes behind leaves earlier.
TEST(Plan, an_own_product_leaves_the_backward_pass_for_its_gate) {
  std::vector<TensorSpec> tensors = {{"conv.weight", DType::f32, 1 << 18, 0, 0.010}, {"fc.weight", DType::f32, 1 << 20, 1, 0.006}};
  tensors[1].rows = 32;
  tensors[1].outputs = 1024;
  tensors[0].forward_at = 0, tensors[1].forward_at = 0.004;
  for (const bool hides : {true, false}) {  // behind the other gradient's way; by priority that comes before it
    const auto choice = parse_choice(hides ? "wfbp,fc.weight=factors" : "p3,fc.weight=factors", "test");
    Compute compute{.forward_seconds = 0.005, .backward_seconds = 0.010, .multiply_rate = 1e12};
    const auto dense = make_plan(tensors, 4, kLink, compute, choice);
    compute.own_rate = 2.0 * 32 * (1 << 20) / 0.003;  // three milliseconds
    const auto moved = make_plan(tensors, 4, kLink, compute, choice);
    ASSERT_EQ(moved.units.front().way, "factors");
    EXPECT_NEAR(moved.predicted_seconds(), dense.predicted_seconds() - (hides ? 0.003 : 0), 1e-9);
    EXPECT_EQ(moved.hash(), dense.hash());
    EXPECT_EQ(to_json(plan_from_json(to_json(moved), "test")), to_json(moved));
    compute.own_rate = 2.0 * 32 * (1 << 20) / 0.9;  // no more than what passed until the gradient was there
    const double most = make_plan(tensors, 4, kLink, compute, choice).predicted_seconds();
    EXPECT_NEAR(most, dense.predicted_seconds() - (hides ? 0.006 : 0), 1e-9);
    EXPECT_DOUBLE_EQ(settled(moved, {0.005, 0.007, 0.001}).predicted_seconds(), settled(dense, {0.005, 0.007, 0.001}).predicted_seconds());
  }
}

// What is multiplied as means arrive hides behind those that are on the link still, all but the last one's.
TEST(Plan, products_of_one_mean_hide_behind_the_next) {
  std::vector<TensorSpec> tensors;
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    tensors.push_back({name, DType::f32, 1 << 20, 0, 0.010});
    tensors.back().rows = 32;
    tensors.back().outputs = 1024;
  }
  const auto chosen = make_plan(tensors, 4, kLink, {0.005, 0.010, 1e9, 0.002}, parse_choice("factors", "test"));
  const auto behind = settled(chosen, {.forward = 0.004, .backward = 0.006, .between = 0.3});
  const double placing = behind.predicted_exposed() / 4;  // for each half as long as it is on the link
  const auto beside = settled(chosen, {.forward = 0.004, .backward = 0.006, .between = 0.3, .placing = placing});
  EXPECT_NEAR(beside.predicted_seconds(), behind.predicted_seconds() - placing / 2, 1e-9);
  EXPECT_EQ(to_json(plan_from_json(to_json(beside), "test")), to_json(beside));
  EXPECT_EQ(without_factors(beside).placing_seconds, 0) << "other arithmetic";
  EXPECT_EQ(beside.hash(), chosen.hash());
}

// By priority each mean's product, and its step, stand behind its own gate in the forward pass, while others are on the link.
TEST(Plan, what_gates_take_hides_behind_less_urgent_means) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t i = 0; i < 2; ++i) {
    tensors.push_back({"fc" + std::to_string(i), DType::f32, 1 << 20, i, 0.010 - 0.005 * i});
    tensors.back().forward_at = 0.0025 * i;
  }
  const auto chosen = make_plan(tensors, 4, kLink, {0.005, 0.010, 1e9, 0.002}, parse_choice("p3", "test"));
  ASSERT_EQ(chosen.order, Order::priority);
  const double placing = 0.010;
  const auto behind = settled(chosen, {.forward = 0.005, .backward = 0.010, .between = 0.05});
  const auto beside = settled(chosen, {.forward = 0.005, .backward = 0.010, .between = 0.05, .placing = placing});
  EXPECT_NEAR(beside.predicted_seconds(), behind.predicted_seconds() - placing / 2, 1e-9) << "the last one's hides behind nothing";
  EXPECT_DOUBLE_EQ(beside.tensors[1].forward_at, 0.0025);
}

TEST(Plan, the_same_figures_give_the_same_plan_and_another_way_another_hash) {
  const auto a = make_plan(fcnet(), 4, kLink), b = make_plan(fcnet(), 4, kLink);
  EXPECT_EQ(to_json(a), to_json(b));
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_NE(a.hash(), make_plan(fcnet(), 4, kLink, {}, parse_choice("ring", "test")).hash());
  EXPECT_NE(a.hash(), make_plan(fcnet(), 3, kLink).hash());
}

// The two wide layers at 32 images a member and 40 GFLOP/s: on 200 Mbit/s 16 MB each way against 0.5 MB and 40 ms of product; where the
// links are fast and the arithmetic slow the gradient itself is cheaper (research/sync.md 1.4).
std::vector<TensorSpec> measured_fcnet(std::uint64_t rows) {
  auto tensors = fcnet();
  for (auto& tensor : tensors) tensor.backward_at = 0.01;
  for (const std::size_t wide : {6u, 8u}) {
    tensors[wide].rows = rows;
    tensors[wide].outputs = 2048;
  }
  return tensors;
}

TEST(Plan, wide_layers_go_by_factors_where_link_and_product_together_are_shorter) {
  const auto by_factors = [](const ExchangePlan& plan) {
    return std::count_if(plan.units.begin(), plan.units.end(), [](const Unit& unit) { return unit.way == kByFactors; });
  };
  const collective::LinkModel slow{100e-6, 25e6, 8e9}, fast{20e-6, 10e9, 8e9};
  EXPECT_EQ(by_factors(make_plan(measured_fcnet(32), 4, slow, {0.01, 0.02, 40e9})), 2);
  EXPECT_EQ(by_factors(make_plan(measured_fcnet(32), 4, fast, {0.01, 0.02, 5e9})), 0);
  EXPECT_EQ(by_factors(make_plan(measured_fcnet(4096), 4, slow, {0.01, 0.02, 40e9})), 0);  // more numbers than the gradient
  EXPECT_EQ(by_factors(make_plan(measured_fcnet(32), 4, slow, {0.01, 0.02, 0})), 0);       // nobody knows what a product costs
  EXPECT_EQ(by_factors(make_plan(measured_fcnet(32), 4, slow, {0.01, 0.02, 40e9}, parse_choice("ring", "test"))), 0);
}

TEST(Plan, what_goes_by_factors_is_priced_with_its_product) {
  const auto plan = make_plan(measured_fcnet(32), 4, kLink, {0.01, 0.02, 40e9});
  for (const auto& unit : plan.units) {
    if (unit.way != kByFactors) continue;
    const auto& tensor = plan.tensors[unit.tensors.front()];
    const double product = 2.0 * 3 * 32 * static_cast<double>(tensor.count) / 40e9;
    const double bytes = 3.0 * 32 * static_cast<double>(tensor.layer().row_bytes());
    EXPECT_NEAR(unit.predicted_seconds, product + bytes / kLink.rate, 0.1 * unit.predicted_seconds);
    EXPECT_GE(unit.predicted_exposed, product);
  }
}

TEST(Plan, survives_its_file_with_its_factors) {
  const auto plan = make_plan(measured_fcnet(32), 4, kLink, {0.01, 0.02, 40e9});
  const auto again = plan_from_json(to_json(plan), "plan.json");
  EXPECT_EQ(again.hash(), plan.hash());
  EXPECT_EQ(to_json(again), to_json(plan));
  std::string broken = to_json(plan);
  const auto rows = broken.find("\"rows\": 32");
  ASSERT_NE(rows, std::string::npos);
  broken.replace(rows, 10, "\"rows\": 00");
  EXPECT_THROW(plan_from_json(broken, "plan.json"), Error);
}

TEST(Plan, survives_its_file_with_what_means_take_packed) {
  auto tensors = fcnet();
  tensors[6].wire_share = 0.25;
  const auto plan = make_plan(tensors, 4, kLink);
  const auto again = plan_from_json(to_json(plan), "plan.json");
  EXPECT_EQ(again.tensors[6].wire_share, 0.25);
  EXPECT_EQ(to_json(again), to_json(plan));
  EXPECT_LT(plan.predicted_seconds(), make_plan(fcnet(), 4, kLink).predicted_seconds());
  for (const std::string wrong : {"1.25", "-0.25"}) {
    std::string broken = to_json(plan);
    broken.replace(broken.find("\"wire_share\": 0.25") + 14, 4, wrong);
    EXPECT_THROW(plan_from_json(broken, "plan.json"), Error) << wrong;
  }
}

TEST(Plan, survives_its_file_to_the_last_digit) {
  auto tensors = fcnet();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].backward_at = 0.1 / static_cast<double>(3 * i + 1);
    tensors[i].forward_at = 0.01 * static_cast<double>(i) / 7;
    tensors[i].takes_data = i == 0;
  }
  auto link = kLink;
  link.saves = 1e5 / 3;
  auto plan = make_plan(tensors, 4, link, {1.0 / 3, 2.0 / 7});
  plan.measured_iterations = 2;
  const auto again = plan_from_json(to_json(plan), "plan.json");
  EXPECT_EQ(to_json(again), to_json(plan));
  EXPECT_EQ(again.link.saves, link.saves);
  EXPECT_EQ(again.measured_iterations, 2u);
  EXPECT_TRUE(again.tensors[0].takes_data && !again.tensors[1].takes_data);
  EXPECT_EQ(again.hash(), plan.hash());
  check_fits(again, tensors, 4);
}

std::string refusal_of_plan(const std::string& text) {
  try {
    plan_from_json(text, "plan.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument);
    return e.what();
  }
  return "accepted";
}

std::string edited(const std::string& from, const std::string& to) {
  auto text = to_json(make_plan(fcnet(), 4, kLink));
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Plan, of_local_steps_survives_its_file_and_members_that_differ_in_any_of_it_have_other_hashes) {
  const auto plan = [](const std::string& choice) { return make_plan(fcnet(), 4, {}, {}, parse_choice(choice, "test")); };
  const auto read = plan_from_json(to_json(plan("diloco:8:2")), "plan.json");
  EXPECT_EQ(read.turns(), 2u);
  EXPECT_EQ(read.hash(), plan("diloco:8:2").hash());
  std::vector<std::uint64_t> hashes;
  for (const char* choice : {"auto", "local:8", "local:4", "diloco:8", "diloco:8:2", "diloco:8:1:0.5", "diloco:8:1:0.7:0.5"}) {
    hashes.push_back(plan(choice).hash());
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
  auto broken = to_json(plan("diloco:8:2"));
  broken.replace(broken.find("diloco:8:2"), 10, "local:8");
  try {
    plan_from_json(broken, "plan.json");
    FAIL() << "turns that nobody takes";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "plan.json: plan.units take 2 turns, which the choice local:8 has not (is this a plan.json of a Shoal run?)");
  }
}

TEST(Plan, a_file_that_is_no_plan_gives_one_line_that_says_where) {
  EXPECT_EQ(refusal_of_plan(""), "plan.json: is not JSON (is this a plan.json of a Shoal run?)");
  EXPECT_EQ(refusal_of_plan("[]"), "plan.json: plan is not an object (is this a plan.json of a Shoal run?)");
  EXPECT_THAT(refusal_of_plan("{}"), testing::HasSubstr("plan has no \"version\""));
  EXPECT_THAT(refusal_of_plan(edited("\"version\": 1", "\"version\": 2")), testing::HasSubstr("plan.version is not 1"));
  EXPECT_THAT(refusal_of_plan(edited("\"way\": \"", "\"way\": \"carrier-pigeon-")), testing::HasSubstr("plan.units[0].way is \"carrier-pigeon-"));
  EXPECT_THAT(refusal_of_plan(edited("\"count\": 3211264", "\"count\": -3")), testing::HasSubstr("plan.tensors[6].count is not a whole number"));
  EXPECT_THAT(refusal_of_plan(edited("\"ranks\": 4", "\"ranks\": 0")), testing::HasSubstr("plan.ranks is 0"));
  for (const char* count : {"0", "4", "2.5"}) {
    const auto told = std::string("\"version\": 1, \"measured_iterations\": ") + count;
    EXPECT_THAT(refusal_of_plan(edited("\"version\": 1", told)), testing::HasSubstr("plan.measured_iterations is "));
  }
  EXPECT_THAT(refusal_of_plan(edited("\"order\": \"fifo\"", "\"order\": \"lifo\"")), testing::HasSubstr("plan.order is \"lifo\", neither fifo nor priority"));
  const auto whole = to_json(make_plan(fcnet(), 4, kLink));
  for (std::size_t cut = 0; cut < whole.size() - 2; cut += 37) EXPECT_NE(refusal_of_plan(whole.substr(0, cut)), "accepted") << cut;
}

TEST(Plan, a_plan_for_another_model_or_size_is_refused_with_what_differs) {
  const auto plan = make_plan(fcnet(), 4, kLink);
  const auto line = [&](const std::vector<TensorSpec>& tensors, std::uint32_t ranks) -> std::string {
    try {
      check_fits(plan, tensors, ranks);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::mismatch);
      return e.what();
    }
    return "fits";
  };
  EXPECT_EQ(line(fcnet(), 4), "fits");
  EXPECT_THAT(line(fcnet(), 3), testing::HasSubstr("it is for 4 members, this run has 3"));
  auto other = fcnet();
  other[6].count = 5;
  EXPECT_THAT(line(other, 4), testing::HasSubstr("tensor 6 is fc1.weight (3211264 f32), the model's is fc1.weight (5 f32)"));
  other.pop_back();
  EXPECT_THAT(line(other, 4), testing::HasSubstr("it has 12 tensors, the model 11"));
}

TEST(Plan, the_same_units_are_priced_on_another_link) {
  const auto plan = make_plan(fcnet(), 4, kLink);
  collective::LinkModel half = kLink, no_latency = kLink;
  half.rate /= 2;
  no_latency.alpha = 0;
  const auto slower = priced_on(plan, half), lighter = priced_on(plan, no_latency);
  EXPECT_EQ(slower.hash(), plan.hash());
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const auto bytes = static_cast<double>(plan.bytes_of(plan.units[u]));
    EXPECT_EQ(slower.units[u].predicted_seconds, collective::price(collective::Collective::all_reduce, plan.units[u].way, 4, bytes, half));
    EXPECT_LT(lighter.units[u].predicted_seconds, plan.units[u].predicted_seconds);
  }
}

// 4 x 4 chips of a known torus: the plan takes the torus for what is large, says so, and keeps the network that its program follows from.
TEST(Plan, takes_the_form_of_a_known_network_where_that_is_quickest) {
  collective::LinkModel link{.alpha = 100e-6, .rate = 125e6};
  link.network = collective::KnownNetwork::made_for(topo::grid({{4, 4}, {true, true}, {125e6, {}}, {}}));
  const std::vector<TensorSpec> tensors{{"small", DType::f32, 10, 0, 0.02}, {"large", DType::f32, 16'000'000, 1, 0.01}};
  const auto way_of_large = [&](const ExchangePlan& plan) {
    for (const Unit& unit : plan.units) {
      if (plan.tensors[unit.tensors.back()].name == "large") return unit.way;
    }
    return std::string();
  };
  const auto plan = make_plan(tensors, 16, link, {0.05, 0.1});
  EXPECT_EQ(way_of_large(plan), collective::kTorus);
  const auto read = plan_from_json(to_json(plan), "plan.json");
  EXPECT_EQ(to_json(read), to_json(plan));
  const auto program = [](const ExchangePlan& by) { return collective::to_json(by.link.network->made(collective::Collective::all_reduce, collective::kTorus)->program()); };
  EXPECT_EQ(program(read), program(plan));
  link.tuning = std::make_shared<const collective::Tuning>("allreduce:@torus:0");
  EXPECT_NE(way_of_large(make_plan(tensors, 16, link, {0.05, 0.1})), collective::kTorus);
  EXPECT_EQ(way_of_large(make_plan(tensors, 16, link, {0.05, 0.1}, parse_choice("mesh_ring", "test"))), collective::kMeshRing);
}

// Trees stay trees where what is left of the network has them; where it has not, and for what so few members cannot do, the price decides anew.
TEST(Plan, among_those_that_are_left_trees_are_those_of_what_is_left_of_the_network) {
  collective::LinkModel link{.alpha = 100e-6, .rate = 25e6};
  link.network = collective::KnownNetwork::made_for(collective::network_of({0, 0, 0, 1, 1, 1}, 1e9, 25e6));
  const auto plan = make_plan({{"small", DType::f32, 10, 0, 0.02}, {"large", DType::f32, 4'000'000, 1, 0.01}}, 6, link, {0.05, 0.1}, parse_choice("trees", "test"));
  const auto all_by = [](const ExchangePlan& by, const std::string& way) {
    return std::all_of(by.units.begin(), by.units.end(), [&](const Unit& unit) { return unit.way == way; });
  };
  ASSERT_TRUE(all_by(plan, collective::kTrees));
  EXPECT_EQ(to_json(for_members(plan, 6, link.network)), to_json(plan));  // nobody is lost
  const std::uint32_t left[] = {0, 2, 3, 5};
  const auto rest = link.network->around(left);
  const auto fewer = for_members(plan, 4, rest);
  EXPECT_TRUE(all_by(fewer, collective::kTrees));
  EXPECT_EQ(fewer.link.network, rest);
  EXPECT_EQ(fewer.ranks, 4U);
  const auto unknown = for_members(plan, 4, nullptr);
  for (const Unit& unit : unknown.units) EXPECT_FALSE(collective::is_of_network(unit.way)) << unit.way;
  EXPECT_EQ(unknown.link.network, nullptr);
}

}  // namespace
}  // namespace shoal::exchange

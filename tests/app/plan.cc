// Goal: `shoal plan` on a model's file answers in words, as data and drawn, and each mistake is one line with status 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

// Two layers of 2048 x 2048 and a convolution before them.
constexpr const char* kModel = R"({"version": 1, "name": "wide <net>", "layers": [
 {"name": "conv", "kind": "conv", "forward_flops": 9e6, "inputs": 3072, "outputs": 16384,
  "parameters": [{"name": "conv.weight", "count": 432}]},
 {"name": "fc1", "kind": "fc", "forward_flops": 8388608, "inputs": 2048, "outputs": 2048,
  "parameters": [{"name": "fc1.weight", "count": 4194304}, {"name": "fc1.bias", "count": 2048}]},
 {"name": "fc2", "kind": "fc", "forward_flops": 8388608, "inputs": 2048, "outputs": 2048,
  "parameters": [{"name": "fc2.weight", "count": 4194304}, {"name": "fc2.bias", "count": 2048}]}]})";

Outcome plan(const Folder& folder, std::vector<std::string> flags) {
  folder.write("m.json", kModel);
  std::vector<std::string> words{"plan", "m.json"};
  words.insert(words.end(), flags.begin(), flags.end());
  return shoal(folder, words);
}

TEST(plan, answers_in_words) {
  const Folder folder;
  const auto outcome = plan(folder, {"-n", "4", "--rate", "200mbit", "--gflops", "40"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* words : {"8393136 parameters in 3 layers", "4 members x 32 samples, 200 Mbit/s each", "limit           bytes",
                            "only fewer bytes help", "fc1.weight", "factors", "true from this rate on", "balance of Das et al."}) {
    EXPECT_THAT(outcome.out, testing::HasSubstr(words));
  }
}

TEST(plan, answers_as_data_that_agree_with_each_other) {
  const Folder folder;
  const auto outcome = plan(folder, {"-n", "4", "--rate", "200mbit", "--gflops", "40", "--json"});
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("model"), "wide <net>");
  EXPECT_EQ(json.at("limit"), "bytes");
  double ddp = 0, automatic = 0;
  for (const auto& way : json.at("ways")) {
    if (way.at("choice") == "ddp:25MB") ddp = way.at("seconds");
    if (way.at("choice") == "auto") automatic = way.at("seconds");
  }
  EXPECT_DOUBLE_EQ(json.at("seconds"), automatic);
  EXPECT_GT(ddp, 3 * automatic);
  EXPECT_EQ(json.at("scaling").size(), 7u);
  EXPECT_EQ(json.at("plan").at("ranks"), 4);
  EXPECT_EQ(json.at("balance").size(), 3u);
}

// One machine's rate says how fast it computes: three forward passes' operations a sample. Those who share it are half as fast.
TEST(plan, takes_the_speed_of_a_machine_from_what_it_trains_alone) {
  const Folder folder;
  const auto flops = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"-n", "2", "--json"});
    return nlohmann::json::parse(plan(folder, flags).out).at("flops").get<double>();
  };
  EXPECT_DOUBLE_EQ(flops({"--samples-per-second", "100"}), 3 * (9e6 + 2 * 8388608) * 100);
  EXPECT_DOUBLE_EQ(flops({"--gflops", "30", "--sharing", "2"}), 15e9);
}

TEST(plan, takes_a_cluster_as_doctor_measured_it) {
  const Folder folder;
  folder.write("doctor.json", R"({"members": [{"flops": 40e9}, {"flops": 30e9}, {"flops": 50e9}],
    "link": {"alpha_s": 2e-4, "rate": 25e6, "add_rate": 8e9, "fan_in": 2e7, "fan_in_alpha_s": 3e-4}})");
  const auto json = nlohmann::json::parse(plan(folder, {"--measured", "doctor.json", "--json"}).out);
  EXPECT_EQ(json.at("members"), 3);
  EXPECT_EQ(json.at("flops"), 30e9) << "the slowest";
  EXPECT_EQ(json.at("rate"), 25e6);

  folder.write("nobody.json", R"({"members": [], "link": {"alpha_s": 2e-4, "rate": 25e6, "add_rate": 8e9, "fan_in": 2e7, "fan_in_alpha_s": 3e-4}})");
  EXPECT_EQ(plan(folder, {"--measured", "nobody.json"}).err, "nobody.json: a run has 1 to 1024 members, not 0\n");
}

// What a file says of the links goes into the prices of programs, those made for that network among them.
TEST(plan, takes_links_that_differ_from_a_topology) {
  const Folder folder;
  // Four hosts on a switch, the last one's line of another rate.
  const auto star = [](const char* last) {
    std::string links;
    for (const std::string host : {"a", "b", "c", "d"}) {
      const std::string rate = host == "d" ? last : "1000";
      if (!links.empty()) links += ",";
      links += R"({"src": ")" + host + R"(", "dst": "s", "bw": )" + rate + R"(, "alpha_us": 50}, )";
      links += R"({"src": "s", "dst": ")" + host + R"(", "bw": )" + rate + "}";
    }
    return R"({"name": "star", "bandwidth_unit": "Mbit/s", "compute": ["a", "b", "c", "d"], "switches": ["s"], "links": [)" + links + "]}";
  };
  folder.write("even.json", star("1000"));
  folder.write("uneven.json", star("200"));
  const auto seconds = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--gflops", "40", "--json"});
    return nlohmann::json::parse(plan(folder, flags).out).at("seconds").get<double>();
  };
  const double even = seconds({"--topology", "even.json", "--plan", "ring"});
  EXPECT_NEAR(even, seconds({"-n", "4", "--rate", "1gbit", "--alpha", "150us", "--plan", "ring"}), 1e-9 * even);

  const auto json = nlohmann::json::parse(plan(folder, {"--topology", "uneven.json", "--gflops", "40", "--json"}).out);
  EXPECT_EQ(json.at("members"), 4);
  EXPECT_NEAR(json.at("network_rates").at("trees").get<double>(), 25e6, 1e-6 * 25e6) << "the slow line is full, and carries all once each way";
  EXPECT_NEAR(json.at("network_rates").at("ring").get<double>(), 25e6 / 1.5, 1e-6 * 25e6) << "2 (4 - 1) / 4 of the data each way";
  EXPECT_TRUE(json.at("scaling").empty());
  EXPECT_LT(seconds({"--topology", "uneven.json", "--plan", "trees"}), seconds({"--topology", "uneven.json", "--plan", "ring"}));
  EXPECT_THAT(plan(folder, {"--topology", "uneven.json", "--gflops", "40"}).out,
              testing::HasSubstr("star: large gradients at 200 Mbit/s by trees, at 133 Mbit/s by a ring"));

  // On a torus large gradients go by the rings that it has, at 32/15 of a link's rate.
  ASSERT_EQ(shoal(folder, {"topo", "generate", "torus", "4x4", "--rate", "1gbit", "-o", "torus.json"}).status, 0);
  const auto torus = nlohmann::json::parse(plan(folder, {"--topology", "torus.json", "--gflops", "40", "--plan", "wfbp", "--json"}).out);
  EXPECT_NEAR(torus.at("network_rates").at("torus").get<double>(), 125e6 * 32 / 15, 1);
  EXPECT_FALSE(torus.at("network_rates").contains("multi_ring"));
  std::set<std::string> ways;
  for (const auto& unit : torus.at("plan").at("units")) ways.insert(unit.at("way"));
  EXPECT_TRUE(ways.contains("torus")) << torus.at("plan").at("units");
  const std::string words = plan(folder, {"--topology", "torus.json", "--gflops", "40", "--plan", "wfbp"}).out;
  EXPECT_THAT(words, testing::HasSubstr(" by a ring, at 2.13 Gbit/s by torus\n"));
  EXPECT_THAT(words, testing::HasSubstr("               torus  ")) << "as the way of a tensor";

  EXPECT_EQ(plan(folder, {"--topology", "even.json", "--rate", "1gbit"}).err, "--rate: the rates are those of even.json\n");
  EXPECT_EQ(plan(folder, {"--topology", "even.json", "-n", "5"}).err, "-n: even.json has 4 hosts, not 5\n");
}

TEST(plan, a_whole_batch_is_shared) {
  const Folder folder;
  const auto json = nlohmann::json::parse(plan(folder, {"-n", "4", "--gflops", "40", "--batch", "64", "--whole-batch", "--json"}).out);
  EXPECT_EQ(json.at("samples"), 16);
}

// Groups are of equal size, and of two members or more; servers leave some that train. Relation: rows for the other numbers of members, and the answer itself.
TEST(plan, scales_by_those_numbers_of_members_that_can_go_by_what_was_asked_for) {
  const Folder folder;
  const auto members = [&](const char* choice) {
    const auto outcome = plan(folder, {"-n", "8", "--gflops", "40", "--plan", choice, "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    std::vector<int> all;
    for (const auto& row : json.at("scaling")) all.push_back(row.at("members"));
    return all;
  };
  EXPECT_THAT(members("hybrid:2"), testing::ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(members("auto,fc1*=hybrid:4"), testing::ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(members("servers:4"), testing::ElementsAre(8, 16, 32, 64));
}

// Of two members, between whom no flows meet: gradients to their owner and values back are the two halves of a direct all-reduce, in bytes and in seconds.
TEST(plan, what_owners_send_back_is_on_the_link_too) {
  const Folder folder;
  folder.write("one.json", R"({"version": 1, "name": "one", "layers": [{"name": "fc", "kind": "fc", "forward_flops": 8388608, "inputs": 2048, "outputs": 2048,
    "parameters": [{"name": "fc.weight", "count": 4194304}]}]})");
  const auto foreseen = [&](const char* choice) {
    return nlohmann::json::parse(shoal(folder, {"plan", "one.json", "-n", "2", "--rate", "200mbit", "--gflops", "40", "--plan", choice, "--json"}).out);
  };
  const auto direct = foreseen("direct"), owners = foreseen("owners");
  ASSERT_EQ(owners.at("plan").at("units").at(0).at("way"), "owners");
  EXPECT_DOUBLE_EQ(owners.at("bytes"), direct.at("bytes"));
  EXPECT_DOUBLE_EQ(owners.at("link_s"), direct.at("link_s"));
}

// fcnet's sums are worked by hand in the zoo's own tests; here its layers arrive whole, and the two wide ones have factors.
TEST(plan, knows_the_models_that_train_knows) {
  const Folder folder;
  const auto outcome = shoal(folder, {"plan", "fcnet", "-n", "4", "--rate", "200mbit", "--gflops", "40", "--json"});
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("parameters"), 7'444'202);
  const auto& tensors = json.at("plan").at("tensors");
  const auto wide = std::count_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.value("rows", 0) == 32; });
  EXPECT_EQ(wide, 2);
}

TEST(plan, is_drawn) {
  const Folder folder;
  ASSERT_EQ(plan(folder, {"-n", "4", "--gflops", "40", "--svg", "p.svg"}).status, 0);
  const auto svg = read_file(folder.path() / "p.svg");
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, testing::HasSubstr("wide &lt;net&gt;: 4 members"));
  EXPECT_THAT(svg, testing::HasSubstr(", not exact</text>"));
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr("nan")));
}

// One of the two would count for nothing.
TEST(plan, flags_that_say_the_same_are_refused) {
  const struct {
    std::vector<std::string> flags;
    std::string line;
  } pairs[] = {
      {{"--measured", "d.json", "--rate", "1gbit"}, "--rate: the links are those of d.json\n"},
      {{"--measured", "d.json", "--alpha", "1ms"}, "--alpha: the links are those of d.json\n"},
      {{"--measured", "d.json", "--add-rate", "1GB/s"}, "--add-rate: the links are those of d.json\n"},
      {{"--measured", "d.json", "--topology", "t.json"}, "--topology: the links are those of d.json\n"},
      {{"-n", "2", "--gflops", "4", "--samples-per-second", "9"}, "--samples-per-second: how fast a member computes is what --gflops says\n"},
      {{"-n", "2", "--gflops", "4", "--sample", "3,4"}, "--sample: is of a factory (package.module:factory), and m.json is none\n"},
  };
  for (const auto& pair : pairs) {
    const Folder folder;
    const auto outcome = plan(folder, pair.flags);
    EXPECT_EQ(outcome.err, pair.line);
    EXPECT_EQ(outcome.status, 2);
  }
  const Folder folder;
  EXPECT_EQ(shoal(folder, {"plan", "lenet", "-n", "2", "--gflops", "4", "--sample", "1,28,28"}).err,
            "--sample: is of a factory (package.module:factory), and lenet is none\n");
}

TEST(plan, a_mistake_is_one_line) {
  const struct {
    std::vector<std::string> flags;
    std::string line;
  } mistakes[] = {
      {{"--gflops", "4"}, "-n: of how many members is not said (shoal plan m.json -n 4)\n"},
      {{"-n", "0", "--gflops", "4"}, "-n: a run has 1 to 1024 members, not 0\n"},
      {{"-n", "4", "--gflops", "-4"}, "--gflops: -4 is not from 1e-06 to 1e+12\n"},
      {{"-n", "4", "--gflops", "4", "--batch", "0"}, "--batch: 0 is not from 1 to 1e+12\n"},
      {{"-n", "4", "--samples-per-second", "0"}, "--samples-per-second: 0 is not from 1e-06 to 1e+12\n"},
      {{"-n", "4", "--samples-per-second", "1e-300"}, "--samples-per-second: 1e-300 is not from 1e-06 to 1e+12\n"},
      {{"-n", "4", "--gflops", "4", "--sharing", "0"}, "--sharing: 0 members cannot share a machine\n"},
      {{"-n", "4", "--gflops", "4", "--overlap", "2"}, "--overlap: 2 is not from 0 to 1\n"},
      {{"-n", "4", "--gflops", "4", "--plan", "auto,ring"}, "--plan: \"ring\" is no GLOB=WAY (one policy, then overrides: auto,embed*=ring)\n"},
      {{"-n", "4", "--gflops", "4", "--plan", "auto,fc9*=ring"},
       "plan: \"fc9*\" matches no tensor of the model (its tensors have names like conv.weight)\n"},
      {{"-n", "4", "--gflops", "4", "--plan", "plan.json"}, "--plan: a saved plan is replayed as it is: there is nothing to predict\n"},
      {{"-n", "4", "--gflops", "4", "--svg", "no/such/p.svg"}, "no/such/p.svg: cannot be written: No such file or directory\n"},
      {{"--measured", "m.json"}, "m.json: is not what doctor measured (shoal doctor -n 4 --json > m.json)\n"},
  };
  for (const auto& mistake : mistakes) {
    const Folder folder;
    const auto outcome = plan(folder, mistake.flags);
    EXPECT_EQ(outcome.err, mistake.line);
    EXPECT_NE(outcome.status, 0);
  }
  const Folder folder;
  EXPECT_EQ(shoal(folder, {"plan", "none.json", "-n", "2"}).err, "none.json: cannot be read: No such file or directory\n");
  EXPECT_THAT(shoal(folder, {"plan", "vgg", "-n", "2"}).err, testing::StartsWith("vgg: there is no such model (one of lenet, "));
  folder.write("m.json", "{}");
  EXPECT_EQ(shoal(folder, {"plan", "m.json", "-n", "2"}).err, "m.json: model has no \"version\" (docs/plans.md describes a model's file)\n");
}

}  // namespace
}  // namespace shoal::app::test

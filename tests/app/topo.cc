// `shoal topo` as people call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shoal/topo/topology.h"
#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(topo, a_generated_network_is_shown_counted_and_drawn) {
  const Folder folder;
  EXPECT_EQ(shoal(folder, {"topo", "generate", "fattree", "4x4", "--rate", "1gbit", "--uplink", "500mbit", "-o", "f.json"}).out,
            "f.json: 16 hosts, 5 switches, 40 links\n");
  const auto shown = shoal(folder, {"topo", "show", "f.json", "--svg", "f.svg"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("fattree_4x4: 16 hosts, 5 switches, 40 links\n4 racks of 4 hosts under one core switch\n"
                                    "  8 links of 500 Mbit/s: t_0 > core, core > t_0, t_1 > core, ...\n"));
  EXPECT_THAT(
      shown.out,
      HasSubstr("diameter: 4 hops\nshared bottleneck: t_0 - core, 500 Mbit/s for 4 hosts (0, 1, 2, 3): 125 Mbit/s each\n"));
  EXPECT_THAT(read_file(folder.path() / "f.svg"), StartsWith("<svg "));
  const auto json = nlohmann::json::parse(shoal(folder, {"topo", "show", "f.json", "--json"}).out);
  EXPECT_EQ(json.at("by_host")[15].at("shared_bottleneck").at("hosts"), 4);
  EXPECT_EQ(json.at("diameter_hops"), 4);
}

TEST(topo, every_form_is_made) {
  const Folder folder;
  const auto made = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"topo", "generate"});
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return topo::topology_from_json(outcome.out);
  };
  const auto pod = made({"torus", "8x4", "--wrap", "2", "--dead", "2,0:2x2", "--dead", "7,3", "--rate", "70GB/s"});
  EXPECT_EQ(pod.hosts.size(), 32u - 5);
  EXPECT_EQ(pod.links[0].rate, 70e9);
  EXPECT_TRUE(made({"mesh", "4x4"}).relative);
  EXPECT_EQ(made({"star", "--rates", "10gbit,1gbit,1gbit"}).links[2].rate, 125e6);
  const auto sites =
      made({"sites", "2x4", "--rate", "1gbit", "--uplink", "200mbit", "--latency", "50us", "--uplink-latency", "20ms"});
  EXPECT_EQ(sites.links.size(), 18u);
  EXPECT_EQ(sites.links.back().latency, std::chrono::milliseconds(20));
}

TEST(topo, what_others_wrote_is_imported_with_what_was_assumed) {
  const Folder folder;
  folder.write("a.gml",
               "graph [ node [ id 0 label \"a\" ] node [ id 1 label \"b\" ] edge [ source 0 target 1 ] edge [ source 0 target "
               "1 LinkSpeedRaw 8000 ] ]");
  const auto refused = shoal(folder, {"topo", "import", "a.gml", "-o", "a.json"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "a.gml: 1 of 2 edges name no speed (--edge-rate 1gbit gives them one)\n");
  const auto made = shoal(folder, {"topo", "import", "a.gml", "--edge-rate", "1gbit", "-o", "a.json"});
  EXPECT_EQ(made.out, "a.json: 2 hosts, no switch, 4 links\n");
  EXPECT_EQ(made.err, "a.gml: 1 of 2 edges name no speed: taken as 1 Gbit/s\n");
  EXPECT_EQ(topo::read_topology(folder.path() / "a.json").links.size(), 4u);
}

TEST(topo, every_mistake_has_its_line) {
  const Folder folder;
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "topo");
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_EQ(refusal({"generate", "donut", "4"}), "form: there is no donut (star, fattree, sites, torus or mesh)\n");
  EXPECT_EQ(refusal({"generate", "star"}), "size: star of which size? (shoal topo generate star 8)\n");
  EXPECT_EQ(refusal({"generate", "sites"}), "size: sites of which size? (shoal topo generate sites 4x8)\n");
  EXPECT_EQ(refusal({"generate", "star", "3", "--rates", "1gbit"}), "--rates: has 1 rate for 3 hosts (one for each, or --rate for all)\n");
  EXPECT_EQ(refusal({"generate", "star", "--rates", "1gbit,2gbit", "--rate", "1gbit"}), "--rate: has no use beside --rates, which has every host's\n");
  EXPECT_EQ(refusal({"generate", "star", "4", "--dead", "1"}), "--dead: is of torus and mesh, not of star\n");
  EXPECT_EQ(refusal({"generate", "fattree", "2x4", "--wrap", "1"}), "--wrap: is of torus and mesh, not of fattree\n");
  EXPECT_EQ(refusal({"generate", "mesh", "2x4", "--rates", "1gbit"}), "--rates: is of star, not of mesh\n");
  EXPECT_EQ(refusal({"generate", "star", "4", "--rate", "1gbit", "--uplink", "1gbit"}), "--uplink: is of fattree and sites, not of star\n");
  EXPECT_EQ(refusal({"generate", "torus", "4x4", "--uplink-latency", "1ms"}), "--uplink-latency: is of fattree and sites, not of torus\n");
  EXPECT_EQ(refusal({"generate", "star", "4", "-o", "no/such.json"}), "no/such.json: cannot be written: No such file or directory\n");
  EXPECT_EQ(refusal({"generate", "star", "4x4"}), "size: \"4x4\" has 2 sizes, star is like 8\n");
  EXPECT_EQ(refusal({"generate", "torus", "4xfour"}), "size: \"4xfour\" is not like 4x8\n");
  EXPECT_EQ(refusal({"generate", "mesh", "4x4", "--wrap", "3"}), "--wrap: there is no dimension 3 of 2\n");
  EXPECT_EQ(refusal({"generate", "mesh", "4x4", "--dead", "3,3:2x2"}),
            "grid: the dead block at 3,3 reaches beyond the grid of 4x4\n");
  EXPECT_EQ(refusal({"generate", "fattree", "4x4", "--uplink", "1gbit"}), "--uplink: needs --rate, too\n");
  EXPECT_THAT(refusal({"probe"}), StartsWith("shoal topo probe: needs members ("));
}

TEST(topo, live_members_agree_on_a_network) {
  const Folder folder;
  const auto outcome = shoal(folder, {"topo", "probe", "-n", "3", "-o", "p.json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto network = topo::read_topology(folder.path() / "p.json");
  EXPECT_EQ(network.hosts.size(), 3u);
  EXPECT_GE(network.links.size(), 6u);
}

}  // namespace
}  // namespace shoal::app::test

// GML: what a network says is what is read; everything else is one line with its place.
#include "shoal/topo/gml.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "tests/refusal.h"

namespace shoal::topo {
namespace {

Imported read(const std::string& text, double edge_rate = 0) { return topology_from_gml(text, "net.gml", {edge_rate}); }

const std::string kTwo = "node [ id 0 label \"a\" ] node [ id 7 label \"b\" ]";
std::string graph(const std::string& rest) { return "graph [ " + kTwo + " " + rest + " ]"; }

TEST(Gml, an_edge_is_a_link_each_way_at_its_speed) {
  const auto made = read("# comment\nCreator \"somebody [\"\ngraph [\n  label \"Two &amp; more\" x [ y [ z 1 ] ]\n" + kTwo +
                         "\n edge [ source 0 target 7 LinkSpeed \"8\" LinkSpeedRaw 8000.0 ] ]");
  EXPECT_EQ(made.topology.name, "Two & more");
  EXPECT_EQ(made.topology.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(made.topology.links, (std::vector<Link>{{0, 1, 1000, Nanoseconds(0)}, {1, 0, 1000, Nanoseconds(0)}}));
  EXPECT_FALSE(made.topology.relative);
  EXPECT_TRUE(made.notes.empty());
  EXPECT_EQ(read(graph("directed 1 edge [ source 7 target 0 LinkSpeedRaw 8 ]")).topology.links,
            (std::vector<Link>{{1, 0, 1, Nanoseconds(0)}}));
}

TEST(Gml, edges_without_a_speed_take_the_stated_one_or_are_refused) {
  const std::string mixed = graph("edge [ source 0 target 7 ] edge [ source 0 target 7 LinkSpeedRaw 80 ]");
  const auto made = read(mixed, 125e6);
  EXPECT_EQ(made.topology.links[0].rate, 125e6);
  EXPECT_EQ(made.topology.links[2].rate, 10);
  EXPECT_EQ(made.notes, std::vector<std::string>{"1 of 2 edges name no speed: taken as 1 Gbit/s"});
  EXPECT_THROW(read(mixed), Error);

  const auto none = read(graph("edge [ source 0 target 7 ]"));
  EXPECT_TRUE(none.topology.relative);
  EXPECT_EQ(none.topology.links[0].rate, 1);
  EXPECT_EQ(none.notes, std::vector<std::string>{"no edge names a speed: read in link units, each link 1"});
}

TEST(Gml, loops_equal_labels_and_parts_are_said) {
  const auto made = read(
      "graph [ node [ id 0 label \"a\" ] node [ id 1 label \"a\" ] node [ id 2 ] node [ id 3 label \"a (0)\" ]"
      " edge [ source 0 target 0 ] edge [ source 0 target 1 ] ]");
  EXPECT_EQ(made.topology.hosts, (std::vector<std::string>{"a (0)", "a (1)", "node (2)", "a (0)'"}));
  EXPECT_EQ(made.topology.links.size(), 2u);
  EXPECT_EQ(made.notes, (std::vector<std::string>{
                            "3 nodes with no label or one that others have: told apart by id",
                            "1 edge from a node to itself: left out", "no edge names a speed: read in link units, each link 1",
                            "not connected: 3 components: 2 hosts (a (0), a (1)), 1 host (node (2)), 1 host (a (0)')"}));
}

TEST(Gml, networks_of_the_zoo_are_read) {
  const std::filesystem::path data = SHOAL_TOPO_DATA;
  const auto abilene = import_topology(data / "Abilene.gml");
  EXPECT_EQ(abilene.topology.hosts.size(), 11u);
  EXPECT_EQ(abilene.topology.links.size(), 28u);
  EXPECT_TRUE(abilene.topology.relative);
  EXPECT_EQ(topology_from_json(to_json(abilene.topology)), abilene.topology);

  const auto eenet = import_topology(data / "Eenet.gml");
  EXPECT_EQ(eenet.topology.hosts.size(), 13u);
  EXPECT_EQ(eenet.topology.links.size(), 32u);
  EXPECT_FALSE(eenet.topology.relative);
  EXPECT_EQ(eenet.notes.size(), 0u);
}

std::string refusal_of_gml(const std::string& text) {
  return shoal::refusal([&] { read(text); });
}

TEST(Gml, every_mistake_is_one_line_with_its_place) {
  EXPECT_EQ(refusal_of_gml(""), "net.gml:1: no graph [ ... ] is there");
  EXPECT_EQ(refusal_of_gml("graph ["), "net.gml:1: the file ends inside a list");
  EXPECT_EQ(refusal_of_gml("graph [ ]"), "net.gml: the graph has no node");
  EXPECT_EQ(refusal_of_gml("graph\n[\n node [ id"), "net.gml:3: the file ends after a key");
  EXPECT_EQ(refusal_of_gml("graph [ label \"a\n"), "net.gml:2: the file ends inside a text");
  EXPECT_EQ(refusal_of_gml("]"), "net.gml:1: a list ends that never began");
  EXPECT_EQ(refusal_of_gml("graph [ 7 8 ]"), "net.gml:1: a key must begin with a letter");
  EXPECT_EQ(refusal_of_gml("graph [ a b ]"), "net.gml:1: a value is neither a number nor a text in quotes nor a list");
  EXPECT_EQ(refusal_of_gml("graph [ node [ label \"a\" ] ]"), "net.gml:1: a node without an id");
  EXPECT_EQ(refusal_of_gml(graph("node [ id 7 ]")), "net.gml:1: a second node with id 7");
  EXPECT_EQ(refusal_of_gml(graph("edge [ source 0 ]")), "net.gml:1: an edge without source or target");
  EXPECT_EQ(refusal_of_gml(graph("edge [ source 0 target 1 ]")), "net.gml: an edge names node 1, which is not there");
  EXPECT_EQ(refusal_of_gml(graph("edge [ source 0 target 7 LinkSpeedRaw -1 ]")), "net.gml:1: LinkSpeedRaw -1 is no speed in bit/s");
  EXPECT_EQ(refusal_of_gml(graph("edge [ source 0 target 7 LinkSpeedRaw nan ]")),
            "net.gml:1: a value is neither a number nor a text in quotes nor a list");
  EXPECT_EQ(refusal_of_gml(graph("edge [ source 0 target 7 ] edge [ source 0 target 7 LinkSpeedRaw 8 ]")),
            "net.gml: 1 of 2 edges name no speed (--edge-rate 1gbit gives them one)");
  EXPECT_EQ(refusal_of_gml(graph("") + graph("")), "net.gml:1: a second graph");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a [ ";
  EXPECT_EQ(refusal_of_gml(deep), "net.gml:1: lists more than 32 deep");
  EXPECT_EQ(refusal_of_gml(std::string(17 << 20, ' ')), "net.gml: 17825792 bytes, at most 16777216 are read");
}

// A file that is cut anywhere is refused or, where nothing but spaces is missing, read whole.
TEST(Gml, a_file_cut_short_is_refused) {
  const std::string whole = read_text(std::filesystem::path(SHOAL_TOPO_DATA) / "Abilene.gml");
  const std::size_t end = whole.find_last_of(']');
  for (std::size_t bytes = 0; bytes <= end; bytes += 13) EXPECT_NE(refusal_of_gml(whole.substr(0, bytes)), "nothing was refused") << bytes;
}

}  // namespace
}  // namespace shoal::topo

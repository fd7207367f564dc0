// Reading and writing topologies: what was written is read again; every mistake has its line.
#include "shoal/topo/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "tests/topo/sample_networks.h"

namespace shoal::topo {
namespace {

using testing::StartsWith;

const char* kStraggler = R"({"name": "straggler", "bandwidth_unit": "Gbit/s", "compute": ["a", "b"], "switches": ["s"],
  "links": [{"src": "a", "dst": "s", "bw": 1.0}, {"src": "s", "dst": "b", "bw": 0.2, "alpha_us": 50}],
  "reference": {"people": "only"}})";

TEST(Topology, units_become_bytes_and_seconds) {
  const Topology topology = topology_from_json(kStraggler);
  EXPECT_EQ(topology.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(topology.links, (std::vector<Link>{{0, 2, 125e6, Nanoseconds(0)}, {2, 1, 25e6, std::chrono::microseconds(50)}}));
  EXPECT_EQ(topology.node_name(2), "s");
  EXPECT_FALSE(topology.relative);
}

TEST(Topology, what_is_written_is_read_again) {
  Topology topology = topology_from_json(kStraggler);
  topology.description = "one slow link";
  EXPECT_EQ(topology_from_json(to_json(topology)), topology);
  topology.relative = true;
  EXPECT_EQ(topology_from_json(to_json(topology)), topology);

  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "shoal_topology.json";
  write_topology(topology, file);
  EXPECT_EQ(read_topology(file), topology);
  std::filesystem::remove(file);
}

TEST(Topology, of_some_hosts_links_and_switches_stay_as_they_were) {
  Topology topology;
  topology.name = "net";
  topology.hosts = {"a", "b", "c"};
  topology.switches = {"s", "t"};
  topology.link_both_ways(0, 3, 1e6);
  topology.link_both_ways(1, 3, 2e6, Nanoseconds(7));
  topology.link_both_ways(3, 4, 3e6);
  topology.link_both_ways(4, 2, 4e6);
  topology.link_both_ways(0, 2, 5e6);
  const Node left[] = {2, 1};
  Topology expected;
  expected.name = "net";
  expected.hosts = {"c", "b"};
  expected.switches = {"s", "t"};
  expected.link_both_ways(1, 2, 2e6, Nanoseconds(7));
  expected.link_both_ways(2, 3, 3e6);
  expected.link_both_ways(3, 0, 4e6);
  EXPECT_EQ(restricted_to(topology, left), expected);
  const Node all[] = {0, 1, 2};
  EXPECT_EQ(restricted_to(topology, all), topology);
}

std::string refusal_of_topology(const std::string& text) {
  try {
    topology_from_json(text, "net.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "no error";
}
std::string with_link(const std::string& link) {
  return R"({"bandwidth_unit": "MB/s", "compute": ["a", "b"], "switches": [], "links": [)" + link + "]}";
}

TEST(Topology, every_mistake_is_named_with_its_place) {
  EXPECT_EQ(refusal_of_topology("{"), "net.json: line 1: not JSON: byte 2 is out of place");
  EXPECT_EQ(refusal_of_topology("{\n \"bandwidth_unit\" \"MB/s\"\n}"), "net.json: line 2: not JSON: byte 26 is out of place");
  EXPECT_EQ(refusal_of_topology(with_link(R"({"bw": NaN})")), "net.json: line 1: not JSON: byte 84 is out of place");
  EXPECT_EQ(refusal_of_topology(with_link(R"({"bw": 1e999})")), "net.json: a number is too big");
  EXPECT_EQ(refusal_of_topology("[]"), "net.json: not a JSON object");
  EXPECT_EQ(refusal_of_topology(R"({"bandwidth_unit": "MB/s"})"), "net.json: compute: a list is missing");
  EXPECT_EQ(refusal_of_topology(R"({"bandwidth_unit": "furlong"})"),
            "net.json: bandwidth_unit: unknown unit \"furlong\" (bytes/s, MB/s, GB/s, Mbit/s, Gbit/s or link units)");
  EXPECT_EQ(refusal_of_topology(R"({"bandwidth_unit": "MB/s", "compute": ["a"], "switches": ["a"], "links": []})"),
            "net.json: switches[0]: \"a\" is there twice");
  EXPECT_EQ(refusal_of_topology(R"({"bandwidth_unit": "MB/s", "compute": [3], "switches": [], "links": []})"),
            "net.json: compute[0]: must be text");
  EXPECT_EQ(refusal_of_topology(R"({"bandwidth_unit": "MB/s", "compute": ["a\u001b[31m"], "switches": [], "links": []})"),
            "net.json: compute[0]: must have no line break or other control character");
  EXPECT_EQ(refusal_of_topology(with_link(R"({"src": "a", "dst": "c", "bw": 1})")),
            "net.json: links[0].dst: no host or switch is called \"c\"");
  EXPECT_EQ(refusal_of_topology(with_link(R"({"src": "a", "dst": "a", "bw": 1})")), "net.json: links[0]: \"a\" is linked to itself");
  for (const char* bad : {"0", "-1", "\"fast\"", "null", "1e999"}) {
    EXPECT_THAT(refusal_of_topology(with_link(std::string(R"({"src": "a", "dst": "b", "bw": )") + bad + "}")), StartsWith("net.json: "))
        << bad;
  }
  for (const char* extreme : {"1e305", "1e13", "1e-10", "1e-320"}) {
    EXPECT_EQ(refusal_of_topology(with_link(std::string(R"({"src": "a", "dst": "b", "bw": )") + extreme + "}")), "net.json: links[0].bw: no link is so slow or so fast") << extreme;
  }
  EXPECT_EQ(refusal_of_topology(with_link(R"({"src": "a", "dst": "b"})")), "net.json: links[0].bw: must be a positive number");
  EXPECT_EQ(refusal_of_topology(with_link(R"({"src": "a", "dst": "b", "bw": 1, "alpha_us": 1e10})")),
            "net.json: links[0].alpha_us: more than an hour");
  EXPECT_EQ(refusal_of_topology(with_link("7")), "net.json: links[0]: must be an object with src, dst and bw");
}

TEST(Topology, an_unreadable_file_is_an_io_error) {
  EXPECT_THROW(
      {
        try {
          read_topology("/nowhere/net.json");
        } catch (const Error& error) {
          EXPECT_STREQ(error.what(), "/nowhere/net.json: cannot be read: No such file or directory");
          throw;
        }
      },
      Error);
  EXPECT_THROW(write_topology({}, "/nowhere/net.json"), Error);
}

TEST(Topology, the_samples_are_read_and_written_the_same) {
  std::size_t read = 0;
  for (const auto& [name, text, topology, is_gml] : sample_networks(SHOAL_TOPO_DATA)) {
    EXPECT_GE(topology.hosts.size(), 2u) << name;
    EXPECT_GE(topology.links.size(), topology.hosts.size() / 2) << name;
    EXPECT_EQ(topology_from_json(to_json(topology)), topology) << name;
    ++read;
  }
  EXPECT_GE(read, 15U);
}

}  // namespace
}  // namespace shoal::topo

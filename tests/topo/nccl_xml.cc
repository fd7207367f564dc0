// NCCL's topology files: machines of the cloud are read with NCCL's own rates; hostile and wrong ones are refused in a line.
#include "shoal/topo/nccl_xml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "tests/refusal.h"

namespace shoal::topo {
namespace {

Imported read_xml(const std::string& text) { return topology_from_nccl_xml(text, "t.xml"); }

// GB/s by "from > to"; parallel links add up.
std::map<std::string, double> rates(const Topology& topology) {
  std::map<std::string, double> rates;
  for (const Link& link : topology.links)
    rates[topology.link_name(link)] += link.rate / 1e9;
  return rates;
}

TEST(NcclXml, every_kind_of_link_has_nccls_rate) {
  const auto made = read_xml(R"(<system version="1">
    <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
      <pci busid="b" class="0x060400" link_speed="16 GT/s" link_width="16">
        <pci busid="g0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="70">
          <nvlink target="g1" count="2" tclass="0x030200"/><nvlink target="sw" count="3" tclass="0x068000"/></gpu></pci>
        <pci busid="n" class="0x020700"><nic><net name="mlx5_0" speed="100000" latency="1.5"/></nic></pci>
      </pci></cpu>
    <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
      <pci busid="g1" class="0x030200" link_width="0" link_speed=""><gpu dev="1" sm="90"><nvlink target="g0" count="2" tclass="0x030200"/></gpu></pci>
    </cpu></system>)");
  EXPECT_EQ(made.topology.hosts, (std::vector<std::string>{"gpu0", "gpu1"}));
  EXPECT_EQ(made.topology.switches, (std::vector<std::string>{"cpu0", "pci b", "nic n", "net mlx5_0", "cpu1", "nvswitch"}));
  const std::map<std::string, double> expected{
      {"gpu0 > pci b", 12},  {"pci b > gpu0", 12},  {"pci b > cpu0", 24},         {"cpu0 > pci b", 24},
      {"nic n > pci b", 12}, {"pci b > nic n", 12}, {"nic n > net mlx5_0", 12.5}, {"net mlx5_0 > nic n", 12.5},
      {"gpu1 > cpu1", 12},   {"cpu1 > gpu1", 12},   {"cpu0 > cpu1", 10},          {"cpu1 > cpu0", 10},
      {"gpu0 > gpu1", 40},   {"gpu1 > gpu0", 41.2}, {"gpu0 > nvswitch", 60},      {"nvswitch > gpu0", 60}};
  const auto found = rates(made.topology);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, rate] : expected) EXPECT_NEAR(found.at(name), rate, 1e-9) << name;
  EXPECT_EQ(made.topology.links[4].latency, Nanoseconds(1500));
}

TEST(NcclXml, machines_of_the_cloud_are_read) {
  const std::filesystem::path data = SHOAL_TOPO_DATA;
  const auto ndv2 = import_topology(data / "ndv2-topo.xml"), ndv4 = import_topology(data / "ndv4-topo.xml"),
             ncv4 = import_topology(data / "ncv4-topo.xml");
  EXPECT_EQ(ndv2.topology.hosts.size(), 8u);
  EXPECT_EQ(ndv2.topology.links.size(), 2u * (8 + 1 + 1));       // GPUs, a NIC, two CPUs
  EXPECT_EQ(ndv4.topology.hosts.size(), 8u);
  EXPECT_EQ(ndv4.topology.links.size(), 2u * (4 + 16 + 6));      // bridges, devices, every two of four CPUs
  EXPECT_EQ(ncv4.topology.hosts, (std::vector<std::string>{"gpu0", "gpu1", "gpu2", "gpu3"}));
  EXPECT_EQ(ncv4.notes, std::vector<std::string>{"4 NVLinks from a GPU to itself: left out"});
  for (const auto& made : {ndv2, ndv4, ncv4}) EXPECT_EQ(topology_from_json(to_json(made.topology)), made.topology);
}

std::string refusal_of_xml(const std::string& text) {
  return shoal::refusal([&] { read_xml(text); });
}
std::string in_system(const std::string& inside) { return "<system><cpu>" + inside + "</cpu></system>"; }

TEST(NcclXml, every_mistake_is_one_line) {
  EXPECT_EQ(refusal_of_xml("<system"), "t.xml: is no XML at byte 6: Error parsing start element tag");
  EXPECT_EQ(refusal_of_xml("<system/>"), "t.xml: <system> has no <cpu>");
  EXPECT_EQ(refusal_of_xml("<system version=\"2\"><cpu/></system>"), "t.xml: <system> at byte 1: version 2 is not known, only 1 is");
  EXPECT_EQ(refusal_of_xml("<topology/>"), "t.xml: has no <system>");
  EXPECT_EQ(refusal_of_xml("<graphs/>"),
            "t.xml: is what NCCL found (graphs), not what it found it in (system) (NCCL_TOPO_DUMP_FILE writes that)");
  EXPECT_EQ(refusal_of_xml(in_system("")), "t.xml: no GPU is there");
  EXPECT_EQ(refusal_of_xml(in_system("<pci class=\"0x03\"/>")), "t.xml: <pci> at byte 14 has no busid");
  EXPECT_EQ(refusal_of_xml(in_system("<pci busid=\"1\"/><pci busid=\"1\"/>")), "t.xml: <pci> at byte 30: a second \"pci 1\"");
  EXPECT_EQ(refusal_of_xml(in_system("<pci busid=\"1\"/><pci busid=\"1\" class=\"0x03\"/>")),
            "t.xml: <pci> at byte 30: a second device at 1");
  EXPECT_EQ(refusal_of_xml(in_system("<pci busid=\"1\" link_width=\"nan\"/>")),
            "t.xml: <pci> at byte 14: link_width must be a number from 0 to 1024");
  EXPECT_EQ(refusal_of_xml(in_system("<pci busid=\"1\"><nic><net speed=\"-5\"/></nic></pci>")),
            "t.xml: <net> at byte 34: speed must be a number from 0 to 1000000000");
  EXPECT_EQ(refusal_of_xml("<system><cpu/><cpu numaid=\"0\"/></system>"), "t.xml: <cpu> at byte 15: a second \"cpu0\"");
}

TEST(NcclXml, hostile_files_cost_nothing) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<pci busid=\"" + std::to_string(i) + "\">";
  for (int i = 0; i < 1000; ++i) deep += "</pci>";
  EXPECT_EQ(refusal_of_xml(in_system(deep)), "t.xml: <pci> more than 32 deep");
  EXPECT_EQ(refusal_of_xml(std::string(17 << 20, '<')), "t.xml: 17825792 bytes, at most 16777216 are read");
  // The entities of a billion laughs stay the text "&c;", which is no number.
  EXPECT_EQ(refusal_of_xml("<!DOCTYPE s [<!ENTITY a \"9999999999\"><!ENTITY c \"&a;&a;&a;\">]><system><cpu><pci busid=\"&c;\" "
                    "link_width=\"&c;\"/></cpu></system>"),
            "t.xml: <pci> at byte 76: link_width must be a number from 0 to 1024");
  std::string cpus = "<system>";
  for (int i = 0; i < 2000; ++i) cpus += "<cpu numaid=\"" + std::to_string(i) + "\"/>";
  EXPECT_EQ(refusal_of_xml(cpus + "</system>"), "t.xml: more than 1048576 links");
}

TEST(NcclXml, a_file_cut_short_is_refused) {
  const std::string whole = read_text(std::filesystem::path(SHOAL_TOPO_DATA) / "ndv4-topo.xml");
  const std::size_t end = whole.find_last_of('>');
  for (std::size_t bytes = 0; bytes < end; ++bytes) EXPECT_NE(refusal_of_xml(whole.substr(0, bytes)), "nothing was refused") << bytes;
}

TEST(Import, a_rate_that_no_link_has_is_refused) {
  const std::string gml = "graph [ node [ id 0 label \"a\" ] node [ id 1 label \"b\" ] edge [ source 0 target 1 LinkSpeedRaw 1e-9 ] ]";
  EXPECT_EQ(shoal::refusal([&] { import_topology(gml, "net.gml"); }), "net.gml: from a to b: no link is so slow or so fast");
}

TEST(Import, the_first_character_tells_the_format) {
  EXPECT_EQ(import_topology("\n<system><cpu><pci busid=\"1\" class=\"0x03\"/></cpu></system>", "f").topology.hosts.size(), 1u);
  EXPECT_EQ(import_topology("# x\ngraph [ node [ id 1 ] ]", "f").topology.hosts.size(), 1u);
  EXPECT_EQ(import_topology(R"({"bandwidth_unit": "MB/s", "compute": ["a"], "switches": [], "links": []})", "f")
                .topology.hosts.size(),
            1u);
  for (const auto& [text, line] :
       {std::pair{"", "f: is empty"}, std::pair{"\x7f\x45LF", "f: is neither JSON nor XML nor GML"}}) {
    try {
      import_topology(text, "f");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), line);
    }
  }
}

}  // namespace
}  // namespace shoal::topo

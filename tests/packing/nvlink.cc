// All ways in which a job can get 3 to 8 GPUs of a DGX-1 whose NVLinks connect them: 46 classes on V100, 14 on P100, the counts that Blink
// evaluates. Golden figures: exact linear programmes solved elsewhere (data/nvlink_allocation_classes.json, computed for this project).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "shoal/packing/pack.h"

namespace shoal::packing {
namespace {

// NVLinks between GPUs (research: a real NCCL dump in NVIDIA/nccl#671; P100: quads complete, i joined to i + 4).
constexpr int kV100[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                             {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

int links(bool v100, int a, int b) {
  if (v100) return kV100[a][b];
  return a != b && (a / 4 == b / 4 || a % 4 == b % 4) ? 1 : 0;
}

topo::Topology allocation(const nlohmann::json& entry) {
  topo::Topology topology;
  topology.relative = true;
  const std::vector<int> gpus = entry["gpus"];
  for (const int gpu : gpus) topology.hosts.push_back("gpu" + std::to_string(gpu));
  for (topo::Node a = 0; a < gpus.size(); ++a) {
    for (topo::Node b = 0; b < a; ++b) {
      const int count = links(entry["machine"] == "dgx1v_v100", gpus[a], gpus[b]);
      if (count > 0) topology.link_both_ways(a, b, count);
    }
  }
  return topology;
}

double fraction(const std::string& text) {  // "5/2"
  const auto slash = text.find('/');
  return std::stod(text) / (slash == std::string::npos ? 1 : std::stod(text.substr(slash + 1)));
}

TEST(Nvlink, every_class_of_allocations_comes_to_its_golden_rates) {
  std::ifstream file(SHOAL_PACKING_DATA "/nvlink_allocation_classes.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["classes"].size(), 60U);
  for (const auto& entry : golden["classes"]) {
    const Network network(allocation(entry));
    const std::string what = entry["machine"].get<std::string>() + " " + entry["gpus"].dump();
    const auto rate = [&](Demand demand, Node root = 0) { return pack_exactly(network, demand, root).rate; };
    const double all_reduce = fraction(entry["allreduce_rate"]), all_gather = fraction(entry["allgather_rate_uniform"]);
    EXPECT_NEAR(rate(Demand::all_reduce), all_reduce, 1e-5) << what;
    EXPECT_NEAR(rate(Demand::all_gather), all_gather, 1e-5) << what;
    EXPECT_NEAR(rate(Demand::reduce_scatter), all_gather, 1e-5) << what;
    Node root = 0;
    for (const auto& [gpu, broadcast] : entry["broadcast_rate_per_root"].items()) {
      EXPECT_NEAR(rate(Demand::broadcast, root++), broadcast.get<double>(), 1e-5) << what << " from " << gpu;
    }
    const Packing exact = pack_exactly(network, Demand::all_reduce);
    const Packing few = pack_few(network, Demand::all_reduce, 0, {}, &exact);
    EXPECT_GE(few.efficiency(), 0.95) << what;
    EXPECT_LE(few.trees.size(), 16U) << what;
  }
}

}  // namespace
}  // namespace shoal::packing

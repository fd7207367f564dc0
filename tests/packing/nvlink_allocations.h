// The ways in which a job can get 3 to 8 GPUs of a DGX-1 that NVLinks connect, one of each class that look alike: 46 on V100, 14 on P100, with
// golden rates (data/nvlink_allocation_classes.json).
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::packing {

inline nlohmann::json nvlink_classes(const std::string& folder) {
  std::ifstream file(folder + "/nvlink_allocation_classes.json");
  return nlohmann::json::parse(file)["classes"];
}

// NVLinks between GPUs (research: a real NCCL dump in NVIDIA/nccl#671; P100: quads complete, i joined to i + 4).
inline constexpr int kV100[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                             {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

inline int links(bool v100, int a, int b) {
  if (v100) return kV100[a][b];
  return a != b && (a / 4 == b / 4 || a % 4 == b % 4) ? 1 : 0;
}

inline topo::Topology allocation(const nlohmann::json& entry) {
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

inline double fraction(const std::string& text) {  // "5/2"
  const auto slash = text.find('/');
  return std::stod(text) / (slash == std::string::npos ? 1 : std::stod(text.substr(slash + 1)));
}

}  // namespace shoal::packing

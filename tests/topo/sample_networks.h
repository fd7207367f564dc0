// Networks of real machines and lines, for tests and benchmarks: those of tests/topo/data, which may be handed on, and, where SHOAL_DATA names the
// folder of the real data sets, all that are there. Files of theirs are read where they lie.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "shoal/core/read_text.h"
#include "shoal/topo/components.h"
#include "shoal/topo/import.h"

namespace shoal::topo {

struct Sample {
  std::string name, text;  // of its file, and what is in it
  Topology topology;
  bool is_gml = false;  // of the Topology Zoo
};

// Every network of the folder, by name. Edges of the Zoo that name no speed where others do: 1 Gbit/s.
inline std::vector<Sample> networks_in(const std::filesystem::path& folder) {
  std::vector<Sample> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string kind = entry.path().extension();
    if (kind != ".json" && kind != ".gml" && kind != ".xml") continue;
    const std::string text = read_text(entry.path());
    if (kind == ".json" && text.find("\"bandwidth_unit\"") == std::string::npos) continue;  // another kind of file
    if (kind == ".xml" && text.find("<system") == std::string::npos) continue;  // NCCL's channels, not its topology
    found.push_back({entry.path().stem(), text, import_topology(entry.path(), {.edge_rate = 125e6}).topology, kind == ".gml"});
  }
  std::sort(found.begin(), found.end(), [](const Sample& a, const Sample& b) { return a.name < b.name; });
  return found;
}

// `mine`: tests/topo/data.
inline std::vector<Sample> sample_networks(const std::filesystem::path& mine) {
  const char* const data = std::getenv("SHOAL_DATA");
  if (data == nullptr) return networks_in(mine);
  std::vector<Sample> all;
  for (const char* folder : {"topologies", "topology_zoo_gml", "nccl_topo"}) {
    const std::vector<Sample> some = networks_in(std::filesystem::path(data) / "collective" / folder);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

inline bool in_one_piece(const Topology& topology) { return components(topology).hosts.size() == 1; }

}  // namespace shoal::topo

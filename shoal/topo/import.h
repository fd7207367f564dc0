// Networks out of files that others wrote: NCCL topology XML (nccl_xml.h), Topology Zoo GML (gml.h) and Shoal's own JSON, told apart
// by their first character. Pure functions of the text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

inline constexpr std::size_t kMostImportBytes = 16 << 20;  // of XML and GML

struct ImportOptions {
  double edge_rate = 0;  // bytes/s of GML edges that name no speed; 0: such a file is refused unless no edge has one
};

struct Imported {
  Topology topology;
  std::vector<std::string> notes;  // what was assumed, renamed or left out: a line each
};

// `where` begins error lines. Throws Error{invalid_argument}, one line with the place in the text.
Imported import_topology(const std::string& text, const std::string& where, const ImportOptions& options = {});
Imported import_topology(const std::filesystem::path& file, const ImportOptions& options = {});

}  // namespace shoal::topo

#include "shoal/topo/import.h"

#include <fmt/format.h>

#include <cctype>

#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "shoal/topo/gml.h"
#include "shoal/topo/nccl_xml.h"
#include "shoal/topo/rate.h"

namespace shoal::topo {

namespace {

Imported with_rates_of_links(Imported made, const std::string& where) {
  const Topology& topology = made.topology;
  for (const Link& link : topology.links) {
    if (is_rate(link.rate)) continue;
    throw Error(Code::invalid_argument, fmt::format("from {} to {}: {}", topology.node_name(link.from), topology.node_name(link.to), kNoSuchRate), where);
  }
  return made;
}

}  // namespace

Imported import_topology(const std::string& text, const std::string& where, const ImportOptions& options) {
  // "graph [" may stand behind lines of comments and other keys; XML and JSON begin with their bracket.
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos) throw Error(Code::invalid_argument, "is empty", where);
  if (text[first] == '<') return with_rates_of_links(topology_from_nccl_xml(text, where), where);
  if (text[first] == '{') return {topology_from_json(text, where), {}};
  if (text[first] == '#' || std::isalpha(static_cast<unsigned char>(text[first])))
    return with_rates_of_links(topology_from_gml(text, where, options), where);
  throw Error(Code::invalid_argument, "is neither JSON nor XML nor GML", where);
}

Imported import_topology(const std::filesystem::path& file, const ImportOptions& options) {
  return import_topology(read_text(file), file.string(), options);
}

}  // namespace shoal::topo

// What holds of every network that a reader of topo/ lets through.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shoal/core/error.h"
#include "shoal/topo/draw.h"
#include "shoal/topo/facts.h"
#include "shoal/topo/gml.h"
#include "shoal/topo/nccl_xml.h"

namespace shoal::topo {

template <class Import>
void check_import(Import import) {
  Imported made;
  try {
    made = import();
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument || std::string(error.what()).find('\n') != std::string::npos) std::abort();
    return;
  }
  const Topology& topology = made.topology;
  for (const Link& link : topology.links) {
    if (link.from == link.to || link.from >= topology.nodes() || link.to >= topology.nodes() || !(link.rate > 0) ||
        !std::isfinite(link.rate))
      std::abort();
  }
  const Topology again =
      topology_from_json(to_json(topology));  // throws what nobody catches, if a reader makes what JSON refuses
  if (again.links != topology.links || again.hosts.size() != topology.hosts.size()) std::abort();
  const Facts counted = facts(topology);
  if (counted.components.of.size() != topology.nodes()) std::abort();
  if (topology.nodes() > 64) return;  // springs are slow
  if (to_svg(topology).empty()) std::abort();
}

}  // namespace shoal::topo

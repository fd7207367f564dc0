// GML as the Internet Topology Zoo writes it (Knight et al., The Internet Topology Zoo, IEEE JSAC 29(9), 2011; Himsolt, GML: a
// portable graph file format, 1997). Nodes become hosts. An edge becomes a link each way, or one link in a graph that says
// `directed 1`; its rate is LinkSpeedRaw in bit/s.
//
//   graph [ node [ id 0 label "Perth" ] node [ id 1 label "Sydney" ] edge [ source 0 target 1 LinkSpeedRaw 2500000000.0 ] ]
//
// A network none of whose edges has a speed is read in link units, each link one. Equal labels are told apart by their ids, edges
// from a node to itself are left out, and a network in several components is kept; a note says so each time.
#pragma once

#include <string>

#include "shoal/topo/import.h"

namespace shoal::topo {

// Reads at most kMostImportBytes, 32 levels deep. Throws Error{invalid_argument}: "where:LINE: what".
Imported topology_from_gml(const std::string& text, const std::string& where, const ImportOptions& options = {});

}  // namespace shoal::topo

// Networks of regular form (generate.h) in words, as `shoal topo generate` and Python's shoal.Network say them. Pure.
#pragma once

#include <string>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

struct NamedForm {              // empty: not said
  std::string name;             // star, fattree, sites, torus or mesh
  std::string size;             // "8" hosts; "4x8": racks or sites x hosts; "32x32": chips
  std::string rate, latency;    // of a host's link, each way: "1gbit", "50us"; without a rate those of links are link units
  std::string rates;            // of a star's links: "10gbit,1gbit"
  std::string uplink, uplink_latency;  // of a rack's uplink, or of the line between two sites; rate if it is not said
  std::string wrap;             // dimensions that close, from 1: "1,2"; a torus's all, a mesh's none
  std::vector<std::string> dead;  // chips "3,5", blocks "2,2:2x4"
};

// Throws Error{invalid_argument} in the command line's words ("--rate"): what is no such number, and what says nothing of this form.
Topology generate(const NamedForm& form);

}  // namespace shoal::topo

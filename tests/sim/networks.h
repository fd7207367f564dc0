// Topologies, jobs and a 2-D sum for the simulator's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/run.h"
#include "shoal/sim/run_program.h"

namespace shoal::sim {

inline constexpr double kRate = 125e6;  // bytes/s of a link, where a test says nothing else
inline void expect_near(double seconds, double expected, double within = 0.005) { EXPECT_NEAR(seconds / expected, 1, within); }

inline topo::Topology hosts_and_switches(std::size_t hosts, std::size_t switches) {
  topo::Topology topology;
  topology.name = "net";
  for (std::size_t i = 0; i < hosts; ++i) topology.hosts.push_back("h" + std::to_string(i));
  for (std::size_t i = 0; i < switches; ++i) topology.switches.push_back("s" + std::to_string(i));
  return topology;
}

// `latency` from host to host: half of it a link.
inline topo::Topology star(topo::Node hosts, double rate, Nanoseconds latency = Nanoseconds(0)) {
  topo::Topology topology = hosts_and_switches(hosts, 1);
  for (topo::Node host = 0; host < hosts; ++host) topology.link_both_ways(host, hosts, rate, latency / 2);
  return topology;
}

// Host y * width + x; neighbours along x and y, around where wrap says so.
inline topo::Topology grid(topo::Node width, topo::Node height, bool wrap_x, bool wrap_y, double rate, Nanoseconds latency) {
  topo::Topology topology = hosts_and_switches(std::size_t{width} * height, 0);
  for (topo::Node y = 0; y < height; ++y) {
    for (topo::Node x = 0; x < width; ++x) {
      if (x + 1 < width || wrap_x) topology.link_both_ways(y * width + x, y * width + (x + 1) % width, rate, latency);
      if (y + 1 < height || wrap_y) topology.link_both_ways(y * width + x, (y + 1) % height * width + x, rate, latency);
    }
  }
  return topology;
}

inline std::shared_ptr<const collective::Program> share(collective::Program program) {
  return std::make_shared<const collective::Program>(std::move(program));
}

// A job of the first hosts of the topology, in order.
inline Job job(collective::Program program, double bytes) {
  Job job;
  job.name = program.name;
  job.hosts.resize(program.ranks);
  std::iota(job.hosts.begin(), job.hosts.end(), topo::Node{0});
  job.program = share(std::move(program));
  job.elements = static_cast<std::uint64_t>(bytes);
  job.element_bytes = 1;
  return job;
}

inline Outcome simulate_one(const topo::Topology& topology, const Job& job, const Costs& costs = Costs::links_only()) {
  return simulate(topology, std::span(&job, 1), {}, costs);
}

}  // namespace shoal::sim

// A scenario: what is simulated on which network, as TOML (docs/simulation.md has every key). Read, it is a value that simulate() takes.
//
//   shoal_sim = 1
//   [topology]
//   form = "star"
//   size = [8]
//   rate = "1gbit"
//   latency = "50us"
//   [[run]]
//   program = "ring"
//   bytes = "64MB"
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "shoal/sim/run_program.h"

namespace shoal::sim {

struct Scenario {
  struct Group {               // what one entry of the file became
    std::string name;
    std::uint32_t first = 0, jobs = 0;
    double bytes = 0;          // of one run; of plans and tables: of all jobs
    std::uint32_t repeats = 1; // runs, iterations or clocks
  };
  std::string name;
  topo::Topology topology;
  Costs costs;
  std::vector<Job> jobs;
  std::vector<Group> groups;   // by job
  std::vector<Transfer> flows;
  std::vector<std::string> flow_names;
  Faults faults;
  std::vector<std::string> fault_names;  // as faults.list
};

inline constexpr std::size_t kMostScenarioBytes = 1 << 20, kMostEntries = 256, kMostScenarioJobs = 100'000;

// `where` begins error lines; `contents` reads the files that the text names and throws Error. Throws Error{invalid_argument} that
// names the key ("run[0].bytes"): unknown ones, too.
Scenario scenario_from_toml(const std::string& text, const std::string& where, const std::function<std::string(const std::string& file)>& contents);

// Files that it names are sought beside it.
Scenario read_scenario(const std::filesystem::path& file);

}  // namespace shoal::sim

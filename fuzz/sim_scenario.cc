// Any bytes as a scenario of shoal sim and, behind the first 0, as whatever file it names (a topology, a program, a plan): a value, or an Error of one
// line. No file is read. Run fuzz_sim_scenario [corpus folder].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/sim/scenario.h"

SHOAL_FUZZ(sim_scenario, data, size) {
  using namespace shoal;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  try {
    sim::scenario_from_toml(bytes.substr(0, end), "fuzz", [&](const std::string&) { return bytes.substr(std::min(end + 1, size)); });
  } catch (const Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}

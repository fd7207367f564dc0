// Any bytes as a scenario of shoal sim and, behind the first 0, as whatever file it names (a topology, a program, a plan): a value, or an Error of one
// line. No file is read. Build with clang and -DSHOAL_FUZZ=ON, then run fuzz_sim_scenario [corpus folder].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shoal/core/error.h"
#include "shoal/sim/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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

// Any bytes as a scenario of shoal sim: a value or an Error. No file is read. Build with clang and -DSHOAL_FUZZ=ON, then run
// fuzz_sim_scenario [corpus folder].
#include <cstddef>
#include <cstdint>
#include <string>

#include "shoal/core/error.h"
#include "shoal/sim/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal;
  try {
    sim::scenario_from_toml(std::string(reinterpret_cast<const char*>(data), size), "fuzz",
                            [](const std::string& file) -> std::string { throw Error(Code::io, "cannot be read", file); });
  } catch (const Error&) {
  }
  return 0;
}

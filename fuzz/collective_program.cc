// Any text as a program: refused, or written as it was read; and what is short enough is proved or refused. Run fuzz_collective_program [corpus folder].
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "shoal/collective/program.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal;
  try {
    collective::Program program = collective::program_from_json(std::string(reinterpret_cast<const char*>(data), size));
    const std::string text = to_json(program);
    if (to_json(collective::program_from_json(text)) != text) std::abort();
    std::uint64_t ops = std::uint64_t{program.ranks} * program.chunks / 16;  // results are looked for at all of them
    for (const auto& lanes : program.lanes) {
      for (const auto& lane : lanes) {
        for (const auto& loop : lane) ops += std::uint64_t{loop.times} * loop.ops.size();
      }
    }
    if (ops < 1 << 14) collective::verify(std::move(program));
  } catch (const Error&) {
  }
  return 0;
}

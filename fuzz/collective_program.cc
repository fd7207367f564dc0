// Any bytes as a program: refused in one line, or read, and then written and read back the same, shown, drawn, and proved or refused in one line. Run
// fuzz_collective_program [corpus folder].
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/target.h"
#include "shoal/collective/certificate.h"
#include "shoal/collective/draw.h"
#include "shoal/collective/show.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"

namespace {

using namespace shoal;
using namespace shoal::collective;

// Whether it went well; what went wrong must be the input's fault, in one line.
template <class Step>
bool goes(Step step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    const bool expected = error.code() == Code::invalid_argument || error.code() == Code::unsupported;
    if (!expected || std::string(error.what()).find('\n') != std::string::npos) std::abort();
    return false;
  }
}

// Two hosts on a line: what a certificate may be for.
topo::Topology line() {
  topo::Topology topology;
  topology.hosts = {"a", "b"};
  topology.link_both_ways(0, 1, 1);
  return topology;
}

}  // namespace

SHOAL_FUZZ(collective_program, data, size) {
  Program program;
  if (!goes([&] { program = program_from_json({reinterpret_cast<const char*>(data), size}); })) return 0;
  const std::string text = to_json(program);
  if (to_json(program_from_json(text)) != text) std::abort();
  std::uint64_t work = 0;                        // unrolled ops: proofs of many are slow
  for (const auto& lanes : program.lanes) {
    for (const Lane& lane : lanes) {
      for (const Loop& loop : lane) work += std::uint64_t{loop.times} * loop.ops.size();
    }
  }
  if (work > 256 || program.chunks > 64) return 0;
  if (show(program).empty()) std::abort();
  if (!goes([&] { verify(program); })) return 0;
  if (to_svg(program).empty()) std::abort();
  static const topo::Topology known = line();
  goes([&] { check_certificate(program, known); });
  return 0;
}

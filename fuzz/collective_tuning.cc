// Any bytes as the rules of SHOAL_TUNE: refused in one line, or read; and then whatever is asked for is a program that can be built, or refused in one line.
// Run fuzz_collective_tuning [corpus folder].
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "fuzz/target.h"
#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/core/error.h"

namespace {

using namespace shoal;
using namespace shoal::collective;

void expect_one_line(const Error& error, Code expected) {
  if (error.code() != expected || std::string(error.what()).find('\n') != std::string::npos) std::abort();
}

}  // namespace

SHOAL_FUZZ(collective_tuning, data, size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  LinkModel link;
  try {
    link.tuning = std::make_shared<const Tuning>(text);
  } catch (const Error& error) {
    expect_one_line(error, Code::invalid_argument);
    return 0;
  }
  if (link.tuning->text() != text) std::abort();
  for (const Collective collective : kCollectives) {
    for (const std::uint32_t ranks : {1U, 2U, 8U}) {
      for (const double bytes : {0., 4096., 1e9}) {
        try {
          build(collective, choose(collective, ranks, bytes, link), ranks);
        } catch (const Error& error) {
          expect_one_line(error, Code::unsupported);
        }
      }
    }
  }
  return 0;
}

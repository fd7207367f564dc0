// Any bytes as sums of outer products: refused, or rows below the end with as many numbers as they say. Run fuzz_factor_outer [corpus folder].
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/factor/outer.h"

SHOAL_FUZZ(factor_outer, data, size) {
  using namespace shoal;
  constexpr std::size_t width = 3;
  constexpr std::uint64_t end = 100;
  try {
    const auto outer = factor::Outer<float>::read(std::as_bytes(std::span(data, size)), width, end);
    std::vector<float> row(width);
    for (std::size_t at = 0; at < outer.rows().size(); ++at) {
      if (outer.rows()[at] >= end || (at > 0 && outer.rows()[at] <= outer.rows()[at - 1])) std::abort();
      outer.add_to(at, row);
    }
    if (outer.write().size() > size + 64) std::abort();
  } catch (const Error&) {
  }
  return 0;
}

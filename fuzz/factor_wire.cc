// Any bytes as a layer's pair: refused, or unpacked into as many numbers as it says it has. Run fuzz_factor_wire [corpus folder].
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/factor/wire.h"

SHOAL_FUZZ(factor_wire, data, size) {
  using namespace shoal;
  const factor::Shape shape{5, 67};
  std::vector<std::uint64_t> aligned(size / sizeof(std::uint64_t));
  if (!aligned.empty()) std::memcpy(aligned.data(), data, aligned.size() * sizeof(std::uint64_t));
  try {
    const auto pair = factor::read(std::as_bytes(std::span(aligned)), shape);
    std::vector<std::byte> numbers(pair.rows * shape.row_bytes());
    factor::unpack(pair.x, shape.type, pair.rows * shape.inputs, numbers.data());
    factor::unpack(pair.g, shape.type, pair.rows * shape.outputs, numbers.data());
  } catch (const Error&) {
  }
  return 0;
}

#include "shoal/factor/factor.h"

namespace shoal::factor {

double extra_operations(const Shape& shape, std::uint64_t rows, std::uint32_t ranks) {
  return 2.0 * (ranks - 1) * static_cast<double>(rows) * static_cast<double>(shape.inputs) * static_cast<double>(shape.outputs);
}

bool fewer_numbers(const Shape& shape, std::uint64_t rows, std::uint32_t ranks) {
  const double m = static_cast<double>(shape.inputs), n = static_cast<double>(shape.outputs), p = ranks;
  return 2 * static_cast<double>(rows) * (p - 1) * (m + n) <= 2 * m * n * (2 * p - 2) / p;
}

}  // namespace shoal::factor

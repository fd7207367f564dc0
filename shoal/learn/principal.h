// Directions in which samples differ most. A pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/data/sparse_rows.h"

namespace shoal::learn {

// The first `dimensions` principal directions of differences of samples, about: eigenvectors of the largest eigenvalues of A^T A, the rows of A being
// `differences`, by a few steps of subspace iteration (Halko, Martinsson and Tropp, SIAM Review 53(2), 2011, algorithm 4.4). Row-major, a row for
// each of differences.width columns of the data; orthonormal, but those that the differences do not have are zero. dimensions <= width.
std::vector<float> principal_directions(const data::SparseRows& differences, std::uint32_t dimensions, std::uint64_t seed);

}  // namespace shoal::learn

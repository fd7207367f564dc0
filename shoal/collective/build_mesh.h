// All-reduce on meshes with dead chips (mesh.h). `ranks` [chip]: its rank, unread of dead ones. Kumar and Jouppi (arXiv 2011.03605).
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/collective/mesh.h"
#include "shoal/collective/program.h"

namespace shoal::collective {

// Half of the data each way round one circuit of neighbours: no link direction carries more than (R-1)/R of the data for R chips on the ring, but for what chips beside
// it hand over and hear.
Program mesh_ring_all_reduce(const Mesh& mesh, const std::vector<std::uint32_t>& ranks);

// Rings of two rows first, then along the columns from pair to pair, in both directions: 2 (2C-1 + P-1) steps with P whole pairs of C columns instead of about 2 RC.
// Live chips of broken pairs hand theirs over first, slice after slice, and hear the result.
Program row_pair_all_reduce(const Mesh& mesh, const std::vector<std::uint32_t>& ranks);

std::vector<std::uint32_t> live_ranks(const Mesh& mesh);  // the k-th live chip is rank k

}  // namespace shoal::collective

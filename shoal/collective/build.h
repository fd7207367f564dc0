// The builders: each writes one well-known schedule as a Program. Every builder works for every number of ranks, 1
// included (then nothing is sent), up to 4096; up to 512 where it writes a lane a pair (gather, direct, ring_reduce_scatter).
// Throws Error{invalid_argument} beyond, or for a root that is no rank. Pure functions. Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005)
// for recursive doubling and halving-doubling; Patarasuk and Yuan, JPDC 69 (2009) for the ring; De Sensi et al., NSDI 2024 for swing; Sanders,
// Speck and Träff, Parallel Computing 35 (2009) for two trees; research notes of this project for direct and chain (docs/collectives.md has steps
// and bytes of each). Programs that need to know more of the network than the number of its members: build_rings.h, build_trees.h, build_mesh.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

// all-reduce
Program direct_all_reduce(std::uint32_t ranks);             // left fold; 2 steps, 2(N-1)/N bytes; every pair talks
Program ring_all_reduce(std::uint32_t ranks);               // rotated; 2(N-1) steps, 2(N-1)/N bytes
Program chain_all_reduce(std::uint32_t ranks);              // left fold; slices run up the line 0..N-1 and back; 2 bytes
Program recursive_doubling_all_reduce(std::uint32_t ranks); // tree; log2 N steps, log2 N bytes; extra ranks fold in and out
Program halving_doubling_all_reduce(std::uint32_t ranks);   // tree; 2 log2 N steps, 2(N-1)/N bytes
Program swing_all_reduce(std::uint32_t ranks);              // tree; as halving_doubling, with peers 1, 1, 3, 5, 11, ... places away on a ring
Program double_binary_tree_all_reduce(std::uint32_t ranks); // tree; about 2 log2 N steps, 2 bytes: half of the data each along two trees
Program nearest_grid_all_reduce(std::uint32_t ranks);       // tree; 2(p-1 + q-1) steps, 2(N-1)/N bytes: rings along p x q = N, near each other
Program gather_all_reduce(std::uint32_t ranks);             // left fold on every member; 1 step, (N-1) bytes: smallest sizes
// Left fold over the first ranks - servers; the last `servers` ranks only add. The chunks are to be cut (Layout) so that links are equally busy.
Program served_all_reduce(std::uint32_t ranks, std::uint32_t servers);

// the others
Program direct_reduce_scatter(std::uint32_t ranks);         // left fold
Program ring_reduce_scatter(std::uint32_t ranks);           // rotated
Program direct_all_gather(std::uint32_t ranks);
Program ring_all_gather(std::uint32_t ranks);
Program flat_broadcast(std::uint32_t ranks, std::uint32_t root);
Program binomial_broadcast(std::uint32_t ranks, std::uint32_t root);
Program chain_broadcast(std::uint32_t ranks, std::uint32_t root);     // pipelined by slices
Program flat_reduce(std::uint32_t ranks, std::uint32_t root);         // left fold at the root
Program chain_reduce(std::uint32_t ranks, std::uint32_t root);        // pipelined; rotated, ends at the root
Program flat_gather(std::uint32_t ranks, std::uint32_t root);
Program flat_scatter(std::uint32_t ranks, std::uint32_t root);
Program direct_all_to_all(std::uint32_t ranks);             // send order staggered by (to - from) mod N

// By name, for plans, tests and `shoal program`: "ring", "direct", ... Throws Error{invalid_argument} with the list.
Program build(Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root = 0);
std::vector<std::string> builder_names(Collective collective);

}  // namespace shoal::collective

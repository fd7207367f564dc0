// Which chip follows which on a mesh with dead chips: arithmetic alone; build_mesh.h makes programs of it.
//
// Chips lie in an even number of rows and columns, links between neighbours up, down, left and right, none around the edge. What fails, fails mostly as a whole
// host: an even-aligned block of 2 x 2 chips. Kumar and Jouppi (arXiv 2011.03605) for rings around holes.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::collective {

struct Mesh {
  std::uint32_t rows = 0, columns = 0;
  std::vector<bool> dead;                // [row * columns + column]; a chip is called by this number
};

struct Hanger {                          // a live chip outside the rings, and the one that it gives its data to
  std::uint32_t chip = 0, host = 0;
};

// One circuit of neighbours through all live blocks, round a tree of them: each block is a circuit of four chips, and every branch of the
// tree takes out the two links that face each other and puts in the two that cross. The tree goes along rows as far as it can.
//
//     o->o  o->o        o->o->o->o      a dead block, and the way round it:   o->o->o->o->o->o
//     ^  v  ^  v   ->   ^        v                                            ^              v
//     o<-o  o<-o        o<-o<-o<-o                                            o<-o  x  x  o<-o
//                                                                                ^  x  x  v
// Live chips of blocks that are not whole, or that whole blocks do not lead to, hang on the ring: each on the chip of it that is the least number of live
// links away, of those the one with the fewest.
struct MeshRing {
  std::vector<std::uint32_t> order;      // chips; the last one's next is the first
  std::vector<Hanger> hangers;
};
// Throws Error{invalid_argument} for an odd or empty mesh, where no block is whole, or where one live chip cannot reach another. O(chips).
MeshRing mesh_ring(const Mesh& mesh);

// Two rows without a dead chip are a ring: right along the upper one, back along the lower one. Live chips of other pairs of rows give their
// data to the nearest whole pair above or below in their column, to that of its chips which has the fewest so far.
//
//     o->o->o->o    pair 0          o->o->o->o
//     o<-o<-o<-o                    o<-o<-o<-o
//     o  x  x  o    a broken pair   |        |    upper chips go up, lower ones down
//     o  x  x  o                    |        |
//     o->o->o->o    pair 1          o->o->o->o
//     o<-o<-o<-o                    o<-o<-o<-o
struct RowPairs {
  std::vector<std::vector<std::uint32_t>> rings;  // of whole pairs from the top: chips; the same place is the same column and row of a pair
  std::vector<Hanger> hangers;
};
// Throws Error{invalid_argument} for an odd or empty mesh, and where no pair is whole. O(chips).
RowPairs row_pairs(const Mesh& mesh);

}  // namespace shoal::collective

#include "shoal/collective/build_mesh.h"

#include "shoal/collective/build_rings.h"

namespace shoal::collective {

namespace {

std::vector<Leaf> leaves(const std::vector<Hanger>& hangers, const std::vector<std::uint32_t>& rank) {
  std::vector<Leaf> all;
  for (const Hanger& hanger : hangers) all.push_back({rank[hanger.chip], rank[hanger.host]});
  return all;
}

}  // namespace

std::vector<std::uint32_t> live_ranks(const Mesh& mesh) {
  std::vector<std::uint32_t> ranks;
  std::uint32_t live = 0;
  for (const bool dead : mesh.dead) {
    ranks.push_back(live);
    live += dead ? 0 : 1;
  }
  return ranks;
}

Program mesh_ring_all_reduce(const Mesh& mesh, const std::vector<std::uint32_t>& ranks) {
  const MeshRing ring = mesh_ring(mesh);
  Rings rings{{static_cast<std::uint32_t>(ring.order.size())}, {}, leaves(ring.hangers, ranks), all_passes(1)};
  for (const std::uint32_t chip : ring.order) rings.members.push_back(ranks[chip]);
  return ring_program("mesh_ring", rings);
}

Program row_pair_all_reduce(const Mesh& mesh, const std::vector<std::uint32_t>& ranks) {
  const RowPairs pairs = row_pairs(mesh);
  const auto count = static_cast<std::uint32_t>(pairs.rings.size());
  Rings rings{{2 * mesh.columns, count}, {}, leaves(pairs.hangers, ranks), {{{0, 1}, false}, {{0, 1}, true}}};
  for (std::uint32_t place = 0; place < count; ++place) {
    for (const std::uint32_t chip : pairs.rings[folded(place, count)]) rings.members.push_back(ranks[chip]);
  }
  return ring_program("row_pair", rings);
}

}  // namespace shoal::collective

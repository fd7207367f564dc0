#include "shoal/collective/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

constexpr std::uint32_t kNoChip = 0xffffffff;

[[noreturn]] void refuse(const Mesh& mesh, const std::string& what, const std::string& hint = "") {
  throw Error(Code::invalid_argument, what, fmt::format("a mesh of {} x {} chips", mesh.rows, mesh.columns), hint);
}

void check(const Mesh& mesh) {
  if (mesh.rows == 0 || mesh.columns == 0 || mesh.rows % 2 != 0 || mesh.columns % 2 != 0) refuse(mesh, "not an even number of rows and columns");
  if (mesh.dead.size() != std::size_t{mesh.rows} * mesh.columns) refuse(mesh, fmt::format("{} chips are said to live or not", mesh.dead.size()));
}

// Calls visit(neighbour) for those of `at` in a grid: left, right, up, down.
template <typename Visit>
void neighbours(std::uint32_t rows, std::uint32_t columns, std::uint32_t at, Visit visit) {
  const std::uint32_t row = at / columns, column = at % columns;
  if (column > 0) visit(at - 1);
  if (column + 1 < columns) visit(at + 1);
  if (row > 0) visit(at - columns);
  if (row + 1 < rows) visit(at + columns);
}

class Blocks {
 public:
  explicit Blocks(const Mesh& mesh) : mesh_(mesh), rows_(mesh.rows / 2), columns_(mesh.columns / 2), whole_(std::size_t{rows_} * columns_) {
    for (std::uint32_t block = 0; block < whole_.size(); ++block) {
      whole_[block] = !mesh.dead[chip(block, 0, 0)] && !mesh.dead[chip(block, 0, 1)] && !mesh.dead[chip(block, 1, 0)] && !mesh.dead[chip(block, 1, 1)];
    }
  }

  // The circuit through the blocks that can be reached from `first`; `taken`: those blocks.
  std::vector<std::uint32_t> circuit(std::uint32_t first, std::vector<bool>& taken) const {
    std::vector<std::uint32_t> next(mesh_.dead.size(), kNoChip), order;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> open{{first, kNoChip}};  // block, from which
    while (!open.empty()) {
      const auto [block, from] = open.back();
      open.pop_back();
      if (taken[block]) continue;
      taken[block] = true;
      next[chip(block, 0, 0)] = chip(block, 0, 1);  // clockwise
      next[chip(block, 0, 1)] = chip(block, 1, 1);
      next[chip(block, 1, 1)] = chip(block, 1, 0);
      next[chip(block, 1, 0)] = chip(block, 0, 0);
      if (from != kNoChip) merge(next, std::min(from, block), std::max(from, block));
      std::vector<std::uint32_t> beside;
      neighbours(rows_, columns_, block, [&](std::uint32_t other) {
        if (whole_[other] && !taken[other]) beside.push_back(other);
      });
      for (auto other = beside.rbegin(); other != beside.rend(); ++other) open.emplace_back(*other, block);  // the row first
    }
    std::uint32_t at = chip(first, 0, 0);
    do {
      order.push_back(at);
      at = next[at];
    } while (at != order.front());
    return order;
  }

  std::size_t count() const { return whole_.size(); }
  bool whole(std::uint32_t block) const { return whole_[block]; }

 private:
  std::uint32_t chip(std::uint32_t block, std::uint32_t down, std::uint32_t right) const {
    return (block / columns_ * 2 + down) * mesh_.columns + block % columns_ * 2 + right;
  }
  // `a` lies left of `b` or above it.
  void merge(std::vector<std::uint32_t>& next, std::uint32_t a, std::uint32_t b) const {
    if (b == a + 1) {
      next[chip(a, 0, 1)] = chip(b, 0, 0);
      next[chip(b, 1, 0)] = chip(a, 1, 1);
    } else {
      next[chip(a, 1, 1)] = chip(b, 0, 1);
      next[chip(b, 0, 0)] = chip(a, 1, 0);
    }
  }

  const Mesh& mesh_;
  const std::uint32_t rows_, columns_;
  std::vector<bool> whole_;
};

// Every live chip that is not on the ring, nearest ones first.
std::vector<Hanger> hang(const Mesh& mesh, const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> host(mesh.dead.size(), kNoChip), load(mesh.dead.size(), 0), reached = order;
  std::vector<bool> queued = mesh.dead;
  for (const std::uint32_t chip : order) {
    host[chip] = chip;
    queued[chip] = true;
  }
  std::vector<Hanger> hangers;
  for (std::size_t begin = 0, end = reached.size(); begin < end; begin = end, end = reached.size()) {  // one distance after another
    std::vector<std::uint32_t> beyond;
    for (std::size_t k = begin; k < end; ++k) {
      neighbours(mesh.rows, mesh.columns, reached[k], [&](std::uint32_t chip) {
        if (!queued[chip]) beyond.push_back(chip);
        queued[chip] = true;
      });
    }
    std::vector<Hanger> found;
    for (const std::uint32_t chip : beyond) {
      std::uint32_t best = kNoChip;
      neighbours(mesh.rows, mesh.columns, chip, [&](std::uint32_t other) {
        if (host[other] != kNoChip && (best == kNoChip || load[host[other]] < load[best])) best = host[other];
      });
      ++load[best];
      found.push_back({chip, best});
    }
    for (const Hanger& hanger : found) {
      host[hanger.chip] = hanger.host;
      reached.push_back(hanger.chip);
      hangers.push_back(hanger);
    }
  }
  for (std::uint32_t chip = 0; chip < mesh.dead.size(); ++chip) {
    if (!mesh.dead[chip] && host[chip] == kNoChip) {
      refuse(mesh, fmt::format("chip {} at row {}, column {} is cut off from others", chip, chip / mesh.columns, chip % mesh.columns));
    }
  }
  return hangers;
}

}  // namespace

MeshRing mesh_ring(const Mesh& mesh) {
  check(mesh);
  const Blocks blocks(mesh);
  std::vector<bool> taken(blocks.count());
  MeshRing ring;
  for (std::uint32_t block = 0; block < blocks.count(); ++block) {  // the longest, where whole blocks are in several parts
    if (!blocks.whole(block) || taken[block]) continue;
    std::vector<std::uint32_t> order = blocks.circuit(block, taken);
    if (order.size() > ring.order.size()) ring.order = std::move(order);
  }
  if (ring.order.empty()) refuse(mesh, "no block of 2 x 2 chips is whole", "make a program for its links");
  ring.hangers = hang(mesh, ring.order);
  return ring;
}

RowPairs row_pairs(const Mesh& mesh) {
  check(mesh);
  const std::uint32_t columns = mesh.columns;
  RowPairs pairs;
  std::vector<std::uint32_t> whole, broken;  // upper rows
  for (std::uint32_t row = 0; row < mesh.rows; row += 2) {
    const auto begin = mesh.dead.begin() + std::ptrdiff_t{row} * columns;
    const bool lives = std::none_of(begin, begin + 2 * std::ptrdiff_t{columns}, [](bool dead) { return dead; });
    (lives ? whole : broken).push_back(row);
    if (!lives) continue;
    auto& ring = pairs.rings.emplace_back();
    for (std::uint32_t column = 0; column < columns; ++column) ring.push_back(row * columns + column);
    for (std::uint32_t column = columns; column-- > 0;) ring.push_back((row + 1) * columns + column);
  }
  if (whole.empty()) refuse(mesh, "every pair of rows has a dead chip", "take mesh_ring");
  std::vector<std::uint32_t> load(mesh.dead.size(), 0);
  for (const std::uint32_t pair : broken) {
    const auto below = std::upper_bound(whole.begin(), whole.end(), pair);
    std::vector<std::uint32_t> rows;         // whole ones, the nearest above and below
    if (below != whole.begin()) rows.insert(rows.end(), {*(below - 1), *(below - 1) + 1});
    if (below != whole.end()) rows.insert(rows.end(), {*below, *below + 1});
    for (std::uint32_t row = pair; row < pair + 2; ++row) {
      for (std::uint32_t column = 0; column < columns; ++column) {
        if (mesh.dead[row * columns + column]) continue;
        const auto cost = [&](std::uint32_t host) { return std::pair(load[host * columns + column], host > row ? host - row : row - host); };
        const std::uint32_t best = *std::min_element(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) { return cost(a) < cost(b); });
        ++load[best * columns + column];
        pairs.hangers.push_back({row * columns + column, best * columns + column});
      }
    }
  }
  return pairs;
}

}  // namespace shoal::collective

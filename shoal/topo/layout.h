// Where the nodes of a drawing lie. Deterministic.
//
//   grid   hosts called by coordinates whose links join neighbours (generate.h): as they are called; a third dimension goes to the back
//   tree   stars, racks, sites: hosts below, switches above by their distance from the leaves; around a circle above kMostAbreast leaves
//   ring   up to kMostOnRing nodes of any other form, on a circle
//   free   springs (Fruchterman and Reingold, Graph drawing by force-directed placement, 1991), drawn together by a little gravity
#pragma once

#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

struct Point {
  double x = 0, y = 0;
};
struct Layout {
  enum class Form { grid, tree, ring, free } form = Form::free;
  std::vector<Point> at;  // by node; about 1 between neighbours, y downwards
  double nearest = 1;  // between two nodes of a grid; less in three dimensions
  std::vector<bool> wraps;  // by link: of a grid, and from one side to the other; else empty
};

inline constexpr std::size_t kMostInGrid = 1 << 14, kMostInTree = 2048, kMostFree = 400;  // nodes
inline constexpr std::size_t kMostAbreast = 24, kMostOnRing = 12;

// Throws Error{invalid_argument} where there are more nodes than its form can show.
Layout layout(const Topology& topology);

}  // namespace shoal::topo

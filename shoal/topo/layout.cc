#include "shoal/topo/layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/topo/grid_form.h"

namespace shoal::topo {
namespace {

constexpr std::size_t kMostGridDimensions = 3;

using GridPlace = std::vector<int>;

// Fills `made` and returns true if the topology is a grid by its names and links.
bool lay_grid(const Topology& topology, Layout& made) {
  if (!topology.switches.empty() || topology.hosts.size() < 2 || topology.links.empty()) return false;
  std::vector<GridPlace> at;
  for (const auto& name : topology.hosts) {
    const auto found = coordinates_in(name);
    at.emplace_back(found.begin(), found.end());
  }
  const std::size_t dimensions = at[0].size();
  if (dimensions == 0 || dimensions > kMostGridDimensions) return false;
  std::vector<int> size(dimensions);
  for (const auto& one : at) {
    if (one.size() != dimensions) return false;
    for (std::size_t d = 0; d < dimensions; ++d) size[d] = std::max(size[d], one[d] + 1);
  }
  for (const Link& link : topology.links) {
    int differ = 0, wraps = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const int apart = std::abs(at[link.from][d] - at[link.to][d]);
      differ += apart > 0;
      wraps += apart > 1;
      if (apart > 1 && apart != size[d] - 1) return false;
    }
    if (differ != 1) return false;
    made.wraps.push_back(wraps > 0);
  }
  made.form = Layout::Form::grid;
  // Rows downwards, columns to the right; planes of the first dimension of three behind each other, none on another's chips.
  const double behind = dimensions == 3 ? std::min(0.4, 0.85 / size[0]) : 0;
  if (dimensions == 3) made.nearest = behind;
  for (const auto& one : at) {
    const double row = dimensions == 1 ? 0 : one[dimensions - 2], column = one[dimensions - 1];
    made.at.push_back({column + behind * one[0], row - 0.7 * behind * one[0]});
  }
  return true;
}

using Neighbours = std::vector<std::set<Node>>;

Neighbours neighbours_of(const Topology& topology) {
  Neighbours neighbours(topology.nodes());
  for (const Link& link : topology.links) {
    neighbours[link.from].insert(link.to);
    neighbours[link.to].insert(link.from);
  }
  return neighbours;
}

// By node: in which round of taking all leaves away it goes. Empty if a circle is left. The last to go, one or two, are the centre.
std::vector<int> heights(const Neighbours& neighbours, std::vector<Node>& centre) {
  std::vector<std::size_t> degree;
  for (const auto& of : neighbours) degree.push_back(of.size());
  std::vector<int> height(neighbours.size(), -1);
  std::vector<Node> leaves;
  for (Node node = 0; node < degree.size(); ++node) {
    if (degree[node] <= 1) leaves.push_back(node);
  }
  std::size_t gone = 0;
  for (int round = 0; !leaves.empty(); ++round) {
    centre = leaves;
    std::vector<Node> next;
    for (const Node leaf : leaves) height[leaf] = round;
    for (const Node leaf : leaves) {
      ++gone;
      for (const Node other : neighbours[leaf]) {
        if (height[other] < 0 && --degree[other] == 1) next.push_back(other);
      }
    }
    leaves = std::move(next);
  }
  // The centre of a star loses all its leaves in one round: it is left with none.
  for (Node node = 0; node < height.size(); ++node) {
    if (height[node] >= 0) continue;
    if (degree[node] != 0) return {};
    height[node] = 1 + *std::max_element(height.begin(), height.end());
    centre = {node};
    ++gone;
  }
  return gone == height.size() && centre.size() <= 2 ? height : std::vector<int>{};
}

bool lay_tree(const Topology& topology, const Neighbours& neighbours, Layout& made) {
  std::vector<Node> centre;
  const std::vector<int> height = heights(neighbours, centre);
  std::size_t edges = 0;
  for (const auto& of : neighbours) edges += of.size();
  if (height.empty() || edges != 2 * (topology.nodes() - 1) || topology.nodes() < 3) return false;

  made.form = Layout::Form::tree;
  made.at.resize(topology.nodes());
  std::vector<bool> seen(topology.nodes());
  double leaves = 0;
  // In order of the search: the leaves stand side by side, every other node above the middle of what hangs on it.
  struct Step {
    Node node;
    std::vector<Node> below;
    std::size_t next = 0;
  };
  for (const Node root : centre) {
    std::vector<Step> path;
    const auto enter = [&](Node node) {
      seen[node] = true;
      Step step{node, {}, 0};
      for (const Node other : neighbours[node]) {
        if (!seen[other] && std::find(centre.begin(), centre.end(), other) == centre.end()) step.below.push_back(other);
      }
      path.push_back(std::move(step));
    };
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next < step.below.size()) {
        enter(step.below[step.next++]);
        continue;
      }
      double middle = 0;
      if (step.below.empty()) middle = leaves++;
      for (const Node other : step.below) middle += made.at[other].x / static_cast<double>(step.below.size());
      made.at[step.node] = {middle, static_cast<double>(height[step.node])};
      path.pop_back();
    }
  }
  const int top = *std::max_element(height.begin(), height.end());
  if (leaves <= kMostAbreast) {
    for (Point& point : made.at) point.y = 1.6 * (top - point.y);
    return true;
  }
  // Too many to stand abreast: on circles around the centre, one unit apart on the outermost.
  const double around = leaves / (2 * std::numbers::pi), inner = centre.size() == 1 ? 0 : 0.25;
  for (Point& point : made.at) {
    const double angle = 2 * std::numbers::pi * point.x / leaves;
    const double radius = around * (inner + (1 - inner) * (1 - point.y / std::max(top, 1)));
    point = {radius * std::cos(angle), radius * std::sin(angle)};
  }
  return true;
}

void lay_ring(Layout& made, std::size_t nodes) {
  made.form = Layout::Form::ring;
  const double radius = std::max(1.0, static_cast<double>(nodes) / 5);
  for (std::size_t i = 0; i < nodes; ++i) {
    const double angle = 2 * std::numbers::pi * (static_cast<double>(i) / static_cast<double>(nodes) - 0.25);
    made.at.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
}

// Every two nodes push each other off by 1 / distance, a link draws its ends together by distance squared.
void lay_free(const Neighbours& neighbours, Layout& made) {
  constexpr int kRounds = 500;
  constexpr double kGravity = 0.04, kNear = 1e-3;
  lay_ring(made, neighbours.size());
  made.form = Layout::Form::free;
  for (int round = 0; round < kRounds; ++round) {
    const double furthest = 0.5 * (1 - round / static_cast<double>(kRounds)) + 0.005;  // that a node may go in this round
    std::vector<Point> force(made.at.size());
    for (std::size_t a = 0; a < made.at.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const double dx = made.at[a].x - made.at[b].x, dy = made.at[a].y - made.at[b].y;
        const double distance = std::max(std::hypot(dx, dy), kNear);
        const double push = 1 / (distance * distance) - (neighbours[a].count(static_cast<Node>(b)) > 0 ? distance : 0);
        force[a].x += dx * push;
        force[a].y += dy * push;
        force[b].x -= dx * push;
        force[b].y -= dy * push;
      }
    }
    for (std::size_t i = 0; i < force.size(); ++i) {
      Point& at = made.at[i];
      const double fx = force[i].x - kGravity * at.x, fy = force[i].y - kGravity * at.y;
      const double scale = std::min(1.0, furthest / std::max(std::hypot(fx, fy), kNear));
      at = {at.x + fx * scale, at.y + fy * scale};
    }
  }
}

void check_size(std::size_t nodes, std::size_t most, const char* form) {
  if (nodes > most)
    throw Error(Code::invalid_argument,
                fmt::format("{} nodes {}: a drawing shows at most {}", show_count(nodes), form, show_count(most)), "topology");
}

}  // namespace

Layout layout(const Topology& topology) {
  Layout made;
  check_size(topology.nodes(), kMostInGrid, "are too many");
  if (lay_grid(topology, made)) return made;
  made.wraps.clear();
  check_size(topology.nodes(), kMostInTree, "that are no grid");
  const Neighbours neighbours = neighbours_of(topology);
  if (lay_tree(topology, neighbours, made)) return made;
  check_size(topology.nodes(), kMostFree, "in no regular form");
  topology.nodes() <= kMostOnRing ? lay_ring(made, topology.nodes()) : lay_free(neighbours, made);
  return made;
}

}  // namespace shoal::topo

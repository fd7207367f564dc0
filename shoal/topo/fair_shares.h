// Rates of flows that share links: the max-min fair allocation by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2).
//
// Given links l with capacities c_l, and flows f over links, each with a level and perhaps a cap k_f, find rates x_f with
//   sum over f on l of x_f <= c_l for every l,   0 <= x_f <= k_f,
// (a flow that passes a link several times is in its sum as often), such that no x_f can grow without taking from a flow of its level
// that has no more, or from one of a lower level. Levels are filled one after another, each with what those before have left: all rates of
// a level rise together, and a flow stops where a link of its path is full or its cap is reached.
//
// O(P log L) a level for P = flows x links a path. Keeps its memory between problems. Threads: one at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace shoal::topo {

class FairShares {
 public:
  void clear();                                // a new problem
  std::uint32_t add_link(double capacity);     // > 0; its number, from 0
  // `links`: as often as it passes them; none at all needs a cap. Returns the flow's number, from 0.
  std::uint32_t add_flow(std::span<const std::uint32_t> links, std::uint32_t level = 0,
                         double cap = std::numeric_limits<double>::infinity());
  void solve();
  double rate(std::uint32_t flow) const { return flows_[flow].rate; }

 private:
  struct Flow {
    std::uint32_t first, count, level;         // of path_
    double cap, rate;
    bool settled;
  };
  struct Link {
    double capacity, left;
    std::uint32_t rising;                      // flows of this level that have not stopped
    std::uint32_t first;                       // of crossing_
  };
  using Share = std::pair<double, std::uint32_t>;  // what each rising flow of the link can have; link

  void cross();                                // fills crossing_
  void fill(std::uint32_t level);
  void stop(std::uint32_t flow, double rate);
  std::span<const std::uint32_t> path(const Flow& flow) const { return std::span(path_).subspan(flow.first, flow.count); }

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> path_;            // links of flow 0, of flow 1, ...
  std::vector<std::uint32_t> crossing_;        // flows of link 0, of link 1, ...
  std::vector<std::uint32_t> capped_;          // of the level, the lowest cap first
  std::vector<Share> shares_;                  // a heap, the least on top; may be out of date on the low side
  std::uint32_t levels_ = 0;
};

}  // namespace shoal::topo

// Equal units of each origin's data, each on a tree, moved about until the busiest arc is as little busy as can be. Internal to few.cc.
//
// Loads are in time: what takes an arc / its rate, all data being 1. Prices rise steeply with load, so what is moved goes where
// the network is idle. Two kinds of move: a whole tree at once, where a unit is small beside the network; and one hop, hung
// elsewhere, where it is not (one tree over a star's hosts is a line then, not a hub and spokes). One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/packing/cheapest.h"

namespace shoal::packing {

class Units {
 public:
  // As many equal units for each origin, where the network is idle. `origins` stay with the caller.
  Units(const Network& network, Demand demand, const std::vector<Origin>& origins, std::uint32_t for_each_origin);

  // Until a few passes over all units in a row made it no better.
  void improve();
  double time() const { return best_time_; }  // of the busiest arc, in the best placing so far
  std::vector<Tree> trees() const;            // that placing, one tree for each unit
  std::vector<double> prices() const;         // of its arcs: they prove a bound (pack.h), a good one where many units are well placed

 private:
  struct Unit {
    std::uint32_t origin = 0;
    double size = 0;                          // of all data
    Node root = 0;
    std::vector<Hop> up, down;                // [host]: how it is left and entered; of mirrored units `down` alone; the root's is empty
  };

  void put(Unit& unit, const Tree& tree);
  void move(Unit& unit, double steep);                     // its whole tree
  void rehang(Unit& unit, Node host, bool up, double steep);
  Hop cheapest_hop(const Unit& unit, Node host, bool up, double steep);
  bool behind(const Unit& unit, Node host, bool up, Node start);  // whether the way of `start` to the root passes `host`
  void carry(const Unit& unit, double sign);
  void carry(const Unit& unit, const Hop& hop, double sign);
  bool hot(const Hop& hop) const;
  double price(std::uint32_t arc, double steep) const;
  bool keep_best();
  Tree tree(const Unit& unit) const;

  const Network& network_;
  const Demand demand_;
  const bool mirrored_;
  const std::vector<Origin>& origins_;
  CheapestTrees cheapest_;
  std::vector<std::vector<std::uint32_t>> into_;           // [node]: arcs
  std::vector<Unit> units_, best_;
  std::vector<double> busy_, best_busy_;                   // [arc]
  double fullest_ = 0, best_time_ = 0;
  std::uint64_t moves_ = 0;

  enum class Behind : std::uint8_t { unknown, no, yes };
  std::vector<Behind> is_behind_;                          // [host]: of this search for a hop (cheapest_hop())
  std::vector<Node> asked_;                                // those that are known there
};

}  // namespace shoal::packing

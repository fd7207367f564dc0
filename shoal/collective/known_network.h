// A network that is known link by link, and what of it counts when programs are chosen: how fast each of them goes there, and those
// that are made for it: synthesize()'s ("trees"), and one that adds inside of each host first where members share hosts ("hierarchical",
// hosts.h). Trees are made by one member and the others take its words, so that all run the same programs to the bit, whatever their
// processors make of a linear programme. Immutable; share across threads.
//
// When members are lost, the others go by what is left of it: around().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "shoal/collective/program_cache.h"
#include "shoal/collective/verify.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

inline constexpr const char *kTrees = "trees", *kHierarchical = "hierarchical";
bool is_of_network(const std::string& program);  // one of these: it is there where a network is known

class KnownNetwork {
 public:
  // Synthesizes all_reduce, all_gather and reduce_scatter, or finds them in `cache`. Throws what that throws, and Error{invalid_argument} for
  // relative rates.
  static std::shared_ptr<const KnownNetwork> made_for(topo::Topology topology, const ProgramCache& cache = {});
  // The same without trees, which need no telling: every member makes it for itself. At most kMostExactHosts (synthesize.h) hosts.
  static std::shared_ptr<const KnownNetwork> without_trees(topo::Topology topology);
  // For the member that makes it: tells the others in words for their from_json(), also why there is none. Throws what topology() and
  // made_for() throw.
  static std::shared_ptr<const KnownNetwork> made_and_told(const std::function<topo::Topology()>& topology,
                                                           const std::function<void(const std::string&)>& tell, const ProgramCache& cache = {});
  // The network of the members that are left, `left` being their ranks in it, in this order: their links at the rates that were known, and trees
  // around the holes where this has trees. nullptr where fewer than two are left, or they reach each other through lost ones alone.
  std::shared_ptr<const KnownNetwork> around(std::span<const std::uint32_t> left) const;
  // The same in words, made by one of them, and as the others hear it. No words: there is none.
  std::string words_around(std::span<const std::uint32_t> left) const;
  static std::shared_ptr<const KnownNetwork> heard(const std::string& words);
  // The same programs where links have been measured anew, host by host: their prices follow, and no bit of what they give changes. nullptr where
  // others share a switch there than do here.
  std::shared_ptr<const KnownNetwork> measured_anew(topo::Topology topology) const;
  // What to_json() wrote, or made_and_told() told. Every program is proved again. Throws Error{invalid_argument} beginning with `where`.
  static std::shared_ptr<const KnownNetwork> from_json(const std::string& text, const std::string& where);
  std::string to_json() const;

  const topo::Topology& topology() const { return topology_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(topology_.hosts.size()); }

  // "trees" or "hierarchical"; nullptr for collectives that have none.
  const Verified* made(Collective collective, const std::string& name) const;
  // Bytes/s of the data that the fullest link lets a builder's program or one of those reach; 0 where that is not known.
  double rate(Collective collective, const std::string& name) const;
  std::uint32_t tree_steps(Collective collective) const;  // messages one after another before the first result is everywhere

 private:
  KnownNetwork(topo::Topology topology, std::map<Collective, Program> programs);

  void add(Collective collective, const char* name, Program program);
  void price_builders();

  using Key = std::pair<Collective, std::string>;
  topo::Topology topology_;
  std::map<Key, Verified> made_;
  std::map<Collective, std::uint32_t> steps_;  // of trees
  std::map<Key, double> rates_;
};

// The topology in a file of any format that topo/import.h reads, a host for each of `ranks` members. Throws Error{invalid_argument}
// naming the file.
topo::Topology topology_for(const std::string& file, std::uint32_t ranks);

}  // namespace shoal::collective

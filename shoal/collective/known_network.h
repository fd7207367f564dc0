// A network that is known link by link, and what of it counts when programs are chosen: how fast each of them goes there, and those
// that are made for it: synthesize()'s ("trees"), and those for the form that it has (forms.h: "torus", "hierarchical" where members share hosts, ...).
// Trees are made by one member and the others take its words, so that all run the same programs to the bit, whatever their
// processors make of a linear programme. Forms follow from the topology, and every member makes them for itself. Immutable; share across threads.
//
// What goes to or from one rank has trees of its own for each root: made with the others, as all members must have them before the first call by that root;
// of networks of at most kMostRoots hosts, so that making, telling and proving them stays a fraction of a second.
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
#include <vector>

#include "shoal/collective/congestion.h"
#include "shoal/collective/forms.h"
#include "shoal/collective/program_cache.h"
#include "shoal/collective/verify.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

inline constexpr const char* kTrees = "trees";
bool is_of_network(const std::string& program);  // this or one of kForms: it may be there where a network is known

inline constexpr std::uint32_t kMostRoots = 8;

class KnownNetwork {
 public:
  // Synthesizes all_reduce, all_gather and reduce_scatter, for kMostRoots hosts and fewer also broadcast and reduce by each root, or finds them in `cache`. Throws what that throws, and Error{invalid_argument} for
  // relative rates.
  static std::shared_ptr<const KnownNetwork> made_for(topo::Topology topology, const ProgramCache& cache = {});
  // The same without trees, which need no telling: every member makes it for itself. At most kMostExactHosts (certificate.h) hosts.
  static std::shared_ptr<const KnownNetwork> without_trees(topo::Topology topology);
  // For the member that makes it: tells the others in words for their from_json(), also why there is none. Throws what make() throws.
  static std::shared_ptr<const KnownNetwork> made_and_told(const std::function<std::shared_ptr<const KnownNetwork>()>& make,
                                                           const std::function<void(const std::string&)>& tell);
  // The network of the members that are left, `left` being their ranks in it, in this order: their links at the rates that were known, and trees
  // around the holes where this has trees. nullptr where fewer than two are left, or they reach each other through lost ones alone.
  std::shared_ptr<const KnownNetwork> around(std::span<const std::uint32_t> left) const;
  // The same in words, made by one of them, and as the others hear it. No words: there is none.
  std::string words_around(std::span<const std::uint32_t> left) const;
  static std::shared_ptr<const KnownNetwork> heard(const std::string& words);
  // The same programs where links have been measured anew, host by host: their prices follow, and no bit of what they give changes: forms stay those of
  // the links as they were, also in words. nullptr where others share a switch there than do here.
  std::shared_ptr<const KnownNetwork> measured_anew(topo::Topology topology) const;
  // What to_json() wrote, or made_and_told() told. Every program is proved again. Throws Error{invalid_argument} beginning with `where`.
  static std::shared_ptr<const KnownNetwork> from_json(const std::string& text, const std::string& where);
  std::string to_json() const;

  const topo::Topology& topology() const { return topology_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(topology_.hosts.size()); }

  // Trees or a form's; nullptr where there is none: forms are for all_reduce of 2 to kMostExactHosts (certificate.h) hosts.
  const Verified* made(Collective collective, const std::string& name, std::uint32_t root = 0) const;
  // Bytes/s of the data that a builder's program or one of those reaches: where it meets itself in links, or those in phases in their course (congestion.h); 0
  // where that is not known.
  double rate(Collective collective, const std::string& name, std::uint32_t root = 0) const;
  Course course(Collective collective, const std::string& name, std::uint32_t root = 0) const;  // of the same

 private:
  struct Task {  // of a program
    Collective collective;
    std::uint32_t root = 0;  // where it has one
    auto operator<=>(const Task&) const = default;
  };
  using Trees = std::map<Task, Program>;
  // `trees` as they are, forms made for `form`.
  KnownNetwork(topo::Topology topology, Trees trees, topo::Topology form);
  static std::vector<Task> tasks(std::uint32_t ranks);  // for which trees are made

  void price();

  using Key = std::pair<Task, std::string>;
  topo::Topology topology_, form_;  // as it is, and as it was when forms were made
  std::map<Key, Verified> made_;
  std::map<Key, Course> courses_;   // of those, and of builders'
  std::map<Key, double> rates_;
};

// The topology in a file of any format that topo/import.h reads, a host for each of `ranks` members. Throws Error{invalid_argument}
// naming the file.
topo::Topology topology_for(const std::string& file, std::uint32_t ranks);

}  // namespace shoal::collective

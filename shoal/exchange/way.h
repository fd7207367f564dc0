// A way for a gradient: by which name plans know it, what it costs, and how a unit travels by it (flow.h). Ways are values without state;
// what an iteration needs lies in the flow that a way makes for each unit.
//
// A name is a family's, followed by its arguments: "ring", "powersgd:4", "topk:0.001:0.9". A new way is one file that defines it, a
// line in ways.h and one in way.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/exchange/leg.h"
#include "shoal/exchange/plan.h"

namespace shoal::collective {
class Runner;
}

namespace shoal::exchange {

class Flow;
class Programs;

// What is to travel, and on what.
struct Load {
  const TensorSpec& first;  // of the unit: its only one by ways that do not pack
  std::uint64_t count = 0;  // elements of all its tensors
  std::uint32_t ranks = 1;
  collective::LinkModel link;
  double multiply_rate = 0;  // floating-point operations/s at which a member multiplies rows of others; 0: unknown
  std::uint32_t servers = 0;  // of the ranks, the last ones (ExchangePlan::servers)
  double wire_share = 1;      // the share of its bytes that all of its means take on a link

  double bytes() const { return static_cast<double>(count * size_of(first.type)); }
};

// Of one member in one iteration, on an otherwise idle network.
struct Cost {
  double sent = 0;       // bytes of the member that sends most
  double wire = 0;       // what these take on a link, packed
  double link = 0;       // seconds
  double latency = 0;    // of these, what is the same for any number of bytes
  double computing = 0;  // seconds of the thread that runs backward, beyond what that does anyway
  double between = 0;    // seconds on the link in the middle of the passes, which wait for it: nothing hides behind that
  double after = 0;      // seconds on the link behind the optimizer's step, before the next forward pass uses the parameter
  double seconds() const { return link + computing + between + after; }
};

// What a flow is made of. The runner and the programs outlive it; plan and unit do not.
struct Road {
  collective::Runner& runner;
  Programs& programs;
  const ExchangePlan& plan;
  const Unit& unit;
  const std::uint64_t& iterations;  // that all members have had so far, also of the run that this one continues; outlives the flow
};

class Way {
 public:
  explicit Way(std::string name) : name_(std::move(name)) {}
  virtual ~Way() = default;

  const std::string& name() const { return name_; }  // with its arguments
  virtual bool exact() const { return true; }        // false: only who asks for it by name gets it
  virtual bool has_momentum() const { return false; }  // it gathers with momentum: an optimizer's would be a second one
  virtual bool is_sized() const { return true; }     // what travels is as long in each iteration; else its size goes before it
  virtual bool packs() const { return false; }       // several small tensors may travel as one
  virtual std::uint32_t groups() const { return 0; }   // of members, in each of which a layer is divided (strips.h); 0: it is whole
  virtual bool owned() const { return false; }         // every member steps a part of the parameter (owned_parts.h)
  bool divides() const { return groups() > 0 || owned(); }  // no member has all of the mean
  virtual void check(std::uint32_t) const {}           // throws Error{invalid_argument} where so many members cannot go by it
  virtual bool carries(const TensorSpec& tensor) const = 0;
  virtual std::vector<Leg> legs(const Load& load) const = 0;
  virtual double computing(const Load&) const { return 0; }  // Cost::computing
  virtual Cost cost(const Load& load) const;           // that of its legs
  double wire_share(const Load& load) const;           // the share of its bytes that what travels takes on a link, about
  virtual std::uint32_t slice_bytes(const Load& load) const;
  virtual std::unique_ptr<Flow> flow(const Road& road) const = 0;

 private:
  std::string name_;
};

bool is_program(const std::string& way);  // that of an all-reduce: a builder's name, or a known network's

// Throws Error{invalid_argument} that names what is wrong with the name or its arguments and how they are spelled.
std::shared_ptr<const Way> way_named(const std::string& name);

struct WayFamily {
  std::string spelling;  // "topk:SHARE[:MOMENTUM[:WARMUP[:CLIP]]]"
  bool exact = true;
};
std::vector<WayFamily> way_families();  // all-reduce builders first

}  // namespace shoal::exchange

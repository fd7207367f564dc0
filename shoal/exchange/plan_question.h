// What an iteration of a model would take on a cluster: the question of `shoal plan` and of Python's shoal.plan(), and the answer as data. Pure, but for
// programs that are kept for networks (program_cache.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shoal/collective/known_network.h"
#include "shoal/collective/program_cache.h"
#include "shoal/exchange/balance.h"
#include "shoal/exchange/forecast.h"
#include "shoal/topo/topology.h"

namespace shoal::exchange {

// The question as it is said: by flags, or by arguments. Texts as core/text.h reads them.
struct Asked {
  struct Network {
    topo::Topology topology;
    std::string where;  // begins error lines
    collective::ProgramCache cache;
  };
  std::string choice = "auto";
  std::uint32_t members = 0;          // 0: as many as the network has hosts; without a network at least 1
  std::optional<Network> network{};   // whose hosts are the members; its links have their own rates
  std::optional<Machine> measured{};  // in place of rate, alpha and add_rate
  std::string rate = "1gbit", alpha = "100us", add_rate = "8GB/s";
  double batch = 32;                  // samples of one member in one step
  bool whole_batch = false;           // of all members together
  std::optional<double> flops{};      // of a member; not said: what was measured, or nothing yet
  double overlap = 1;
};

struct PlanQuestion {
  Model model;
  Cluster cluster;
  Choice choice;
  double overlap = 1;  // of sending and receiving, for the balance equations
};
struct PlanAnswer {
  Forecast forecast;
  std::vector<LayerBalance> balance;
  double balanced_seconds = 0;  // of an iteration divided like that
};

// `value`, or Error{invalid_argument} of `where` that says from what to what it may be.
double within(double value, double least, double most, const std::string& where);

// All of the question but its model: that comes last, for making one may take long. Of a network what is made for it is in the cluster, too.
// Throws Error{invalid_argument} that names what is wrong, with `dashes` in front: "--" of flags, nothing of arguments. So of bounds, of a choice of which
// nothing is predicted, of a network of more than kMostExactHosts hosts, and of members that are not as many.
PlanQuestion question_of(const Asked& asked, const std::string& dashes);

PlanAnswer answer(const PlanQuestion& question);
std::string to_json(const PlanQuestion& question, const PlanAnswer& answer);  // one line

// Bytes/s at which a large all-reduce goes over a network by the named program; 0: by none of that name.
double rate_of(const collective::KnownNetwork& known, const char* program);

}  // namespace shoal::exchange

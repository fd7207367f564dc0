// What an iteration of a model would take on a cluster: the question of `shoal plan` and of Python's shoal.plan(), and the answer as data. Pure.
#pragma once

#include <string>
#include <vector>

#include "shoal/collective/program_cache.h"
#include "shoal/exchange/balance.h"
#include "shoal/exchange/forecast.h"
#include "shoal/topo/topology.h"

namespace shoal::exchange {

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

// The cluster whose members are the hosts of this network, with what is made for it: of the machine's link stay the cost of a step and the rate of additions.
// `where` begins error lines. Throws Error{invalid_argument} for more than kMostExactHosts hosts, and for members that are not as many (0: not said).
void take_network(Cluster& cluster, const topo::Topology& network, const std::string& where,
                  const collective::ProgramCache& cache);

PlanAnswer answer(const PlanQuestion& question);
std::string to_json(const PlanQuestion& question, const PlanAnswer& answer);  // one line

}  // namespace shoal::exchange

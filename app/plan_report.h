// A forecast in words, as data, and drawn. Pure: figures in, text out.
#pragma once

#include <string>
#include <vector>

#include "shoal/exchange/balance.h"
#include "shoal/exchange/forecast.h"

namespace shoal::app {

struct PlanQuestion {
  exchange::Model model;
  exchange::Cluster cluster;
  exchange::Choice choice;
  double overlap = 1;  // of sending and receiving, for the balance equations
};
struct PlanAnswer {
  exchange::Forecast forecast;
  std::vector<exchange::LayerBalance> balance;
  double balanced_seconds = 0;  // of an iteration divided like that
};

std::string to_text(const PlanQuestion& question, const PlanAnswer& answer);
std::string to_json(const PlanQuestion& question, const PlanAnswer& answer);  // one line
// Two charts in one picture: speed-up over members, and seconds of an iteration by each way.
std::string to_svg(const PlanQuestion& question, const PlanAnswer& answer);

}  // namespace shoal::app

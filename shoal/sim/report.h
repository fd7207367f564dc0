// A scenario simulated, and what came of it as data: `shoal sim --json`, and Python's shoal.simulate(). Pure.
#pragma once

#include <limits>
#include <string>

#include "shoal/sim/scenario.h"

namespace shoal::sim {

struct Simulated {
  Outcome outcome;
  double undisturbed = 0;  // seconds of the same scenario without its faults
};
Simulated simulate(const Scenario& scenario, bool trace = false);

struct Span {
  double begin = std::numeric_limits<double>::infinity(), end = 0;
};
Span span_of(const Scenario::Group& group, const Outcome& outcome);  // from its first job's beginning to its last one's end

std::string to_json(const Scenario& scenario, const Simulated& simulated);  // all figures: runs, flows, faults, every link

}  // namespace shoal::sim

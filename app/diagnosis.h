// What measured figures mean for a run, in words. Pure: figures in, text out.
#pragma once

#include <string>
#include <vector>

#include "shoal/collective/probe.h"

namespace shoal::app {

struct Machine {  // of one member
  std::string host, address;
  unsigned cores = 0;    // that its process may use
  double flops = 0;      // of a matrix product while every member computes; 0: not measured
  std::string no_flops;  // then: why
};

struct Figures {
  std::vector<Machine> members;  // by rank
  collective::PairMatrix pairs;  // size 0 with one member
  collective::LinkModel link;
};

// A step of `fcnet` with 128 images a member: the yardstick.
struct StepForecast {
  double compute = 0;        // seconds; 0: not known
  double communication = 0;  // seconds, not overlapped
  double balanced_rate = 0;  // bytes/s of a member at which both are equal; 0: not known
};
StepForecast forecast_fcnet(const Figures& figures);

std::string to_text(const Figures& figures);
std::string to_json(const Figures& figures);

}  // namespace shoal::app

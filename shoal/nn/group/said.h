// What is said of the network in rank 0's environment, which counts for all members: SHOAL_TOPOLOGY, "auto" if it is not set, and
// SHOAL_TUNE (collective/tuning.h).
#pragma once

#include <memory>
#include <string>

#include "shoal/collective/tuning.h"

namespace shoal::nn {

struct Said {
  std::string topology;  // "auto", "measure", "none", or a file
  std::shared_ptr<const collective::Tuning> tuning;
  bool is_file() const { return topology != "auto" && topology != "measure" && topology != "none"; }
};

std::string said_here();                 // for the others
Said read_said(const std::string& text); // what said_here() wrote; throws Error{invalid_argument} for rules that are wrong

}  // namespace shoal::nn

// Parts of joining that meet.cc and again.cc share.
#pragma once

#include <memory>
#include <string>

#include "shoal/net/job.h"

namespace shoal::net {

// At a coordinator that somebody holds.
std::unique_ptr<Job> join_as_client(const Place& place, const std::string& secret, const JoinOptions& options);
// The same in place.generation, or in a later one if the launcher begins that before all have come.
std::unique_ptr<Job> join_in_generation(Place place, const std::string& secret, const JoinOptions& options);

}  // namespace shoal::net

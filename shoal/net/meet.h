// Parts of joining that meet.cc and again.cc share.
#pragma once

#include <memory>
#include <string>

#include "shoal/net/job.h"

namespace shoal::net {

// At a coordinator that somebody holds.
std::unique_ptr<Job> join_as_client(const Place& place, const std::string& secret, const JoinOptions& options);
// The same where others come in place of lost members (again.h): as one of the first, or as one of those who come.
std::unique_ptr<Job> join_or_come(Place place, const std::string& secret, const JoinOptions& options);
// The scope of a generation's cards, and under which keys, each with its rank behind, they stand in a scope.
inline std::string scope_of(std::uint64_t generation) { return "shoal/" + std::to_string(generation) + "/"; }
inline std::string cards_in(const std::string& scope) { return scope + "member/"; }

}  // namespace shoal::net

// Parts of joining that meet.cc and again.cc share.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "shoal/net/card.h"
#include "shoal/net/job.h"

namespace shoal::net {

// At a coordinator that somebody holds.
// Asked to stop, it throws Error{cancelled} instead of waiting for the others' cards any longer.
std::unique_ptr<Job> join_as_client(const Place& place, const std::string& secret, const JoinOptions& options, const std::stop_token& stop = {});
// The same where others come in place of lost members (again.h): as one of the first, or as one of those who come.
std::unique_ptr<Job> join_or_come(Place place, const std::string& secret, const JoinOptions& options);
// What this process says of itself, but for where it can be reached. options: with_environment().
Card card_of(const Place& place, const std::string& secret, const JoinOptions& options);
// The scope of a generation's cards, and under which keys, each with its rank behind, they stand in a scope.
inline std::string scope_of(std::uint64_t generation) { return "shoal/" + std::to_string(generation) + "/"; }
inline std::string cards_in(const std::string& scope) { return scope + "member/"; }

// A board at which nobody waits any longer who was asked to stop.
class Stoppable final : public Rendezvous {
 public:
  Stoppable(Rendezvous& board, std::stop_token stop) : board_(board), stop_(std::move(stop)) {}
  void put(const std::string& key, const std::string& value) override { board_.put(key, value); }
  std::string get(const std::string& key, Nanoseconds patience) override;

 private:
  Rendezvous& board_;
  const std::stop_token stop_;
};

}  // namespace shoal::net

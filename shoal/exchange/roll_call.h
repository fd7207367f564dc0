// The roll call that opens an iteration: every member tells every other its weight, the iteration's number, the hash of
// its plan and what else it tells. It costs one small message a pair and gives four things: the weights of the mean, proof that all
// members run the same code, the name of the member that everybody waited for, and one step at which all know what one was told and what
// each of them takes.
//
// Threads: start() and the handlers run on the transport's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shoal/exchange/took.h"
#include "shoal/net/transport.h"

namespace shoal::exchange {

// What a member tells all others beside its weight.
struct Told {
  std::uint64_t asks = 0;    // bits whose meaning the caller knows
  std::uint64_t digest = 0;  // of what must have the same bits on all members; 0: not said in this iteration
  Took took{};               // this member's last iteration
};

struct Announcement {
  std::uint64_t iteration = 0;
  std::uint64_t plan_hash = 0;
  double weight = 0;  // samples; 0: out of data
  Told told{};
  std::uint64_t ended = 0;  // 1: this member begins no iteration any more, this one neither
};

class RollCall {
 public:
  // `members`: transport ranks by group rank; `self`: this member's place in it.
  RollCall(net::Transport& transport, std::vector<net::Rank> members, std::uint32_t self);

  // Sends `own` to all and gathers theirs. done runs once: with nullptr when all have answered alike, with Error{mismatch}
  // naming the members that differ, or with the transport's failure.
  void start(std::uint64_t operation, const Announcement& own, net::Done done);

  // Answers with `own`, which says that this member has ended, whoever starts that operation, and waits for nobody.
  void end(std::uint64_t operation, const Announcement& own);

  const std::vector<Announcement>& answers() const { return answers_; }  // by group rank, after done
  net::Rank last() const { return members_[last_]; }                     // whose answer came last

 private:
  void arrived(const net::Failure& failure);
  net::Failure compare() const;

  net::Transport& transport_;
  const std::vector<net::Rank> members_;
  const std::uint32_t self_;
  std::vector<Announcement> answers_;
  Announcement own_;
  std::uint32_t waiting_ = 0, last_ = 0;
  net::Failure failure_;
  net::Done done_;
};

}  // namespace shoal::exchange

// Why a run took longer than its computing: its account told as causes, the largest first, each with its number and a remedy.
//
// A member's whole time, start-up included, is computing (forward and backward) or belongs to one cause, so shares add up to 1.
// What the caller waited for the network, X a step, is told apart by taking causes away one after another, each as far as X goes:
//   first     what the first steps, which are measured to make the plan from, waited longer than as many later ones
//   bytes     what the plan's units cost on its link, had a message no latency, behind the end of backward
//   latency   what the same costs more with the link's latency
//   late      what members that compute longer than the mean delay the others, beyond what was seen as waiting for them
//   slower    the rest: the network gave less than the plan counted on
// Bytes, latency and slower become one slow link where the links into or out of one member, or one link, are far below the others.
// Without a plan X stays whole. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "shoal/exchange/plan.h"
#include "shoal/observe/account.h"

namespace shoal::observe {

enum class CauseKind {
  link,           // the link is full: only fewer bytes help
  slow_link,      // one link or member below the others
  latency,        // many small operations
  slower,         // less than the plan counted on
  communication,  // exposed, without a plan to judge it by
  slow_member,    // the others wait for one
  turns,          // members wait for each other by turns
  loading,        // between a step's end and the next forward
  pauses,         // the same, rare and long
  optimizer,
  recording,
  first_steps,    // of the network: before there was a plan
  start_up,
  rest,           // what none of the above explains
};
const char* name(CauseKind kind);  // "slow_link"

struct Cause {
  CauseKind kind;
  double seconds;      // of the run, mean over members
  std::string title;   // "waiting for rank 2 (hostc)"
  std::string says;    // the numbers behind it
  std::string remedy;
};

struct Explanation {
  double seconds = 0;    // the run: start-up and the members' time, mean
  double computing = 0;  // of it: forward and backward
  std::int64_t steps = 0;
  std::size_t members = 0;
  std::vector<Cause> causes;         // those with time, the largest first
  std::vector<std::string> remarks;  // of the account

  double share(double part) const { return seconds > 0 ? part / seconds : 0; }
};

// Below this share of the run a cause is not worth a remedy.
constexpr double kWorthMending = 0.05;

// `plan` may be null.
Explanation explain(const Account& account, const exchange::ExchangePlan* plan);

// The largest cause in one line, or that there is nothing to mend.
std::string headline(const Explanation& explanation);
std::string to_text(const Explanation& explanation, const std::string& run);
std::string to_json(const Explanation& explanation, const std::string& run);  // one line

}  // namespace shoal::observe

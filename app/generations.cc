#include "app/generations.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shoal/net/again.h"

namespace shoal::app {
namespace {

constexpr Nanoseconds kLookEach = std::chrono::milliseconds(250);
constexpr Nanoseconds kToldByThen = std::chrono::seconds(8);  // silence that counts as a loss, and its telling

}  // namespace

Generations::Generations(net::Coordinator& coordinator, unsigned most) : coordinator_(coordinator), most_(most) {
  coordinator_.put(net::kLauncherKey, "shoal run");
}

void Generations::look() {
  if (steady_now() < next_look_) return;
  next_look_ = steady_now() + kLookEach;
  lost_.resize(generation_ + std::size_t{1});
  for (std::size_t generation = 0; generation < lost_.size(); ++generation) {
    for (const net::Rank rank : net::read_list(coordinator_.find(net::lost_key(generation)).value_or(""))) {  // by members in any order: one may know of fewer
      if (std::ranges::count(lost_[generation], rank) == 0) lost_[generation].push_back(rank);
    }
  }
}

// They may say so when another generation has begun already: for one that was killed at the same time.
bool Generations::given_up(unsigned rank, const Member& member) const {
  for (std::size_t generation = member.generation; generation < lost_.size(); ++generation) {
    if (std::ranges::count(lost_[generation], rank) > 0) return true;
  }
  return false;
}

// One that was cut off sees that it lost the others, and ends, before these have said that they lost it. One that ended by another fault of its own would
// come to it each time, and the others cannot go on without it.
Generations::Next Generations::next(const std::vector<Member>& members, const std::vector<unsigned>& failures) {
  if (stopped_ || failures.empty()) return Next::wait;
  if (!may(failures.size())) return Next::end;
  const auto is_lost = [&](unsigned rank) { return was_lost(members[rank]) || given_up(rank, members[rank]); };
  const auto may_be = [&](unsigned rank) { return is_lost(rank) || members[rank].status == lost_a_peer; };
  if (std::ranges::all_of(failures, is_lost)) {
    unexplained_ = {};
    return Next::replace;
  }
  if (unexplained_ == Instant{}) unexplained_ = steady_now();
  return std::ranges::all_of(failures, may_be) && steady_now() - unexplained_ < kToldByThen ? Next::wait : Next::end;
}

void Generations::begun(std::size_t replaced, unsigned members) {
  replaced_ += static_cast<unsigned>(replaced);
  coordinator_.put(net::again_key(generation_), std::to_string(members));
}

bool Generations::takes_more() const { return !over_ && !stopped_ && net::takes_more(coordinator_, generation_); }
bool Generations::waits(unsigned attempt, unsigned rank) const { return net::waits(coordinator_, attempt, rank); }
void Generations::require_alike(unsigned attempt, unsigned rank) const { net::require_alike(coordinator_, attempt, rank, generation_); }
bool Generations::begin_with_more(unsigned attempt, unsigned members) {
  const bool begins = !over_ && !stopped_ && net::begin_with_more(coordinator_, attempt, generation_ + std::uint64_t{1}, members);
  if (begins) ++generation_;
  return begins;
}

void Generations::over() {
  if (std::exchange(over_, true)) return;
  coordinator_.give_up(Error(Code::peer_lost, "the run is over", "join"));
}

}  // namespace shoal::app

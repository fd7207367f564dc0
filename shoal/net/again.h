// What members and launcher tell each other on the coordinator's board where others come in place of members that were lost
// (replaces_lost()), or beside those that there are, a generation of the run after the other:
//   lost/G   by members of generation G: whom they have lost. Its process may live: a stopped one, or one behind a cut cable
//   grows/G  by rank 0 of generation G: whether its members go on with others beside them (wait_for_more())
//   again/G  by the launcher: it has started others, and so many members are in generation G. All join in it. Those beyond the members of the generation
//            before wait in it already, so that nobody waits while they start
//   launcher by the launcher, from the beginning: it starts others, and tells each its generation (SHOAL_GENERATION)
//
// Without a launcher (`shoal meet` holds the board, and people or batch systems start processes that know rank, size and board) who comes finds its generation
// by itself: the latest in which nobody of its rank has come; else, once the others have lost that rank, the next one, which it begins
// by again/G. So does who has a rank beyond theirs, once they take others. Nobody then ends a process that was given up: it learns so and ends, or is ended by
// who started it.
//   broken/G by members where there is no launcher: generation G will not be complete, because somebody was lost on the way. Another may begin the next
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "shoal/net/job.h"
#include "shoal/net/transport.h"

namespace shoal::net {

inline std::string lost_key(std::uint64_t generation) { return "lost/" + std::to_string(generation); }
inline constexpr const char* kLauncherKey = "launcher";
inline std::string broken_key(std::uint64_t generation) { return "broken/" + std::to_string(generation); }
inline std::string grows_key(std::uint64_t generation) { return "grows/" + std::to_string(generation); }
inline std::string again_key(std::uint64_t generation) { return "again/" + std::to_string(generation); }

// join_again() of job.h, for somebody who may have no need of the others any more: asked to stop, it throws Error{cancelled} soon after. Nobody lost: those with
// whom this member was to be in `before` have left it for a later generation, or are about to.
std::unique_ptr<Job> join_again(const Place& before, const std::vector<Rank>& lost, const JoinOptions& options, const std::stop_token& stop);
// What that says first.
void tell_lost(const Place& in, const std::vector<Rank>& lost);

// By rank 0 of the generation `in`, while its members can go on with more beside them: tells so, and waits until a later one has begun. Returns how many are in that;
// none where it is asked to stop, or the board is gone.
std::optional<Rank> wait_for_more(const Place& in, const std::stop_token& stop);

bool grows(const std::optional<std::string>& said);                   // what is under grows/G

std::string show_list(const std::vector<Rank>& ranks);                // "1,3"
std::vector<Rank> read_list(const std::string& text);                 // what is no rank is left out

}  // namespace shoal::net

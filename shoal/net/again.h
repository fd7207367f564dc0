// What members and launcher tell each other on the coordinator's board where others come in place of members that were lost
// (replaces_lost()), or beside those that there are, a generation of the run after the other:
//   first      by the coordinator, where it knows: how many members generation 0 has
//   launcher   by the launcher, from the beginning: it starts others, and tells each its generation (SHOAL_GENERATION)
//   lost/G     by members of generation G: whom they have lost. Its process may live: a stopped one, or one behind a cut cable
//   again/G    by who begins generation G: how many members it has. The launcher does, when it has started others in place of lost ones. All join in it
//
// More than there were:
//   grows/G    by rank 0 of generation G: "yes" while its members go on with others beside them (wait_for_more()), "no" after that
//   waits/A/R  by a process that the launcher has started for rank R, in its attempt A (SHOAL_JOINS=A): its card. It waits for
//   comes/A    by the launcher, when all of that attempt wait: again/G has begun, and they come in G. Until then nobody else has to do with them
// Rank 0 sees again/G and ends generation G-1 as if it were lost; so do the others see it. Of who leaves so nobody says that it is lost.
//
// Without a launcher (`shoal meet` holds the board, and people or batch systems start processes that know rank, size and board) who comes finds its generation
// by itself: the latest in which nobody of its rank has come; else, once the others have lost that rank, the next one, which it begins. So does who has the rank
// behind theirs, once they take others. Several may try at once: the first word under again/G stands. Nobody then ends a process that was given up: it learns so
// and ends, or is ended by who started it.
//   broken/G   by members where there is no launcher: generation G will not be complete, because somebody was lost on the way. Another may begin the next
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

class Coordinator;

inline constexpr const char* kFirstKey = "first";
inline constexpr const char* kLauncherKey = "launcher";
inline std::string lost_key(std::uint64_t generation) { return "lost/" + std::to_string(generation); }
inline std::string again_key(std::uint64_t generation) { return "again/" + std::to_string(generation); }
inline std::string grows_key(std::uint64_t generation) { return "grows/" + std::to_string(generation); }
inline std::string broken_key(std::uint64_t generation) { return "broken/" + std::to_string(generation); }

// join_again() of job.h, for somebody who may have no need of the others any more: asked to stop, it throws Error{cancelled} soon after. Nobody lost: those with
// whom this member was to be in `before` have left it for a later generation, or are about to.
std::unique_ptr<Job> join_again(const Place& before, const std::vector<Rank>& lost, const JoinOptions& options, const std::stop_token& stop);
// What that says first.
void tell_lost(const Place& in, const std::vector<Rank>& lost);

// By rank 0 of the generation `in`, while its members can go on with more beside them: says so, and waits until a later one has begun. Returns how many are in that;
// none where it is asked to stop and nobody has come by then. A board that is gone for a while is waited for.
std::optional<Rank> wait_for_more(const Place& in, const std::stop_token& stop);

// The launcher's side of it.
inline constexpr const char* kJoinsVariable = "SHOAL_JOINS";
bool takes_more(const Coordinator& board, std::uint64_t generation);
bool waits(const Coordinator& board, std::uint64_t attempt, Rank rank);
// That it may be a member beside those of this generation. Throws Error{mismatch} naming what differs.
void require_alike(const Coordinator& board, std::uint64_t attempt, Rank rank, std::uint64_t generation);
// The next generation has so many members, those of the attempt among them. False, and nothing has happened, where those that there are take nobody any more.
bool begin_with_more(Coordinator& board, std::uint64_t attempt, std::uint64_t next, Rank members);

std::string show_list(const std::vector<Rank>& ranks);                // "1,3"
std::vector<Rank> read_list(const std::string& text);                 // what is no rank is left out

}  // namespace shoal::net

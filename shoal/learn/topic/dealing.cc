#include "shoal/learn/topic/dealing.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "shoal/core/error.h"
#include "shoal/learn/topic/memory.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint64_t kRound = 1024;  // turns of a round where shares are not as time is

// Turns of each member: by time, or, where memory is too little for that, by what fits.
std::vector<std::uint64_t> weights(std::span<const Brought> members, std::uint64_t tokens) {
  std::vector<std::uint64_t> weight(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) weight[m] = members[m].time();
  std::vector<bool> full(members.size());
  double room = 0;
  for (const Brought& member : members) room += static_cast<double>(member.room);
  bool moved = room > static_cast<double>(tokens);
  double left = static_cast<double>(tokens);  // for those who are not full
  while (moved) {
    moved = false;
    double time = 0;
    for (std::size_t m = 0; m < members.size(); ++m) time += full[m] ? 0 : static_cast<double>(members[m].time());
    const double rate = left / time;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (full[m] || static_cast<double>(members[m].room) >= rate * static_cast<double>(members[m].time())) continue;
      full[m] = moved = true;
      left -= static_cast<double>(members[m].room);
    }
  }
  if (std::ranges::none_of(full, [](bool is) { return is; })) return weight;
  std::uint64_t time = 0, turns = kRound;
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (full[m])
      turns -= weight[m] =
          static_cast<std::uint64_t>(static_cast<double>(members[m].room) / static_cast<double>(tokens) * kRound);
    time += full[m] ? 0 : members[m].time();
  }
  for (std::size_t m = 0; m < members.size(); ++m) {  // each has its part of what is left, so that all are dealt
    if (full[m]) continue;
    turns -= weight[m] = turns * members[m].time() / time;
    time -= members[m].time();
  }
  return weight;
}

}  // namespace

bool Dealing::limited() const {
  return std::ranges::any_of(memory, [](std::uint64_t bytes) { return bytes != 0; });
}

Brought brought(std::uint64_t memory, const text::Corpus& corpus, const MemberPart& part, std::uint32_t speed) {
  if (memory == 0) return {part.threads, 0, kNoLimit, speed};
  const Footprint all = footprint(corpus, part, 1);
  const std::uint64_t others = all.total() - all.documents, left = memory - std::min(memory, others);
  const double a_token =
      static_cast<double>(all.documents) / static_cast<double>(std::max<std::uint64_t>(1, corpus.documents.tokens()));
  return {part.threads, memory, a_token == 0 ? kNoLimit : static_cast<std::uint64_t>(static_cast<double>(left) / a_token), speed};
}

// Turns are spread over the round as evenly as weights allow: each time it is the turn of who is furthest behind its part (smooth weighted round robin).
std::vector<std::uint32_t> turns_of(std::span<const Brought> members, std::uint64_t tokens) {
  std::vector<std::uint64_t> weight = weights(members, tokens);
  std::uint64_t divisor = 0;
  for (const std::uint64_t of : weight) divisor = std::gcd(divisor, of);
  for (std::uint64_t& of : weight) of /= divisor;
  if (std::ranges::all_of(weight, [](std::uint64_t of) { return of == 1; })) return {};
  const auto round = static_cast<std::int64_t>(std::accumulate(weight.begin(), weight.end(), std::uint64_t{0}));
  std::vector<std::uint32_t> turns;
  std::vector<std::int64_t> behind(weight.size());
  for (std::int64_t turn = 0; turn < round; ++turn) {
    for (std::size_t m = 0; m < weight.size(); ++m) behind[m] += static_cast<std::int64_t>(weight[m]);
    const auto next = std::max_element(behind.begin(), behind.end());  // the first of those
    *next -= round;
    turns.push_back(static_cast<std::uint32_t>(next - behind.begin()));
  }
  return turns;
}

Dealing agreed(Gather& gather, const Brought& own, std::uint64_t tokens) {
  using Numbers = std::array<std::uint64_t, 4>;
  Dealing dealing;
  std::vector<Brought> members;
  for (const Numbers& theirs : said_by_all(gather, Numbers{own.threads, own.memory, own.room, own.speed}, "what each member brings")) {
    if (theirs[0] == 0 || theirs[0] > kMostThreads || theirs[3] == 0 || theirs[3] > kFullSpeed)
      throw Error(Code::mismatch, "a member says that it brings what cannot be", "", "run the same program on all members");
    members.push_back({static_cast<std::uint32_t>(theirs[0]), theirs[1], theirs[2], static_cast<std::uint32_t>(theirs[3])});
    dealing.threads.push_back(members.back().threads);
    dealing.memory.push_back(theirs[1]);
    dealing.speeds.push_back(members.back().speed);
  }
  dealing.turns = turns_of(members, tokens);
  return dealing;
}

}  // namespace shoal::learn::topic

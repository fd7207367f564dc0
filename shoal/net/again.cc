#include "shoal/net/again.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "shoal/core/text.h"
#include "shoal/net/card.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/environment.h"
#include "shoal/net/job.h"
#include "shoal/net/meet.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kAnotherLoss = 2s;  // for the launcher to have noticed it
constexpr Nanoseconds kToldByThen = 10s;  // the same of one that is silent: others find that first, and tell
constexpr Nanoseconds kLookEach = 250ms;  // at what members say of their losses
constexpr Nanoseconds kAsLongAsTheyWork = 24h * 365;

std::optional<std::string> find(Rendezvous& board, const std::string& key, Nanoseconds patience = 1ms) {
  try {
    return board.get(key, patience);
  } catch (const Error& error) {
    if (error.code() != Code::timeout) throw;
    return {};
  }
}
bool has_come(Rendezvous& board, std::uint64_t generation, Nanoseconds patience) { return find(board, again_key(generation), patience).has_value(); }

Rank number_from(const std::string& text) {
  const std::vector<Rank> one = read_list(text);
  return one.empty() ? 0 : one.front();
}

// How many members there are in it: in the first one as many as each of them has been told.
Rank members_of(Rendezvous& board, std::uint64_t generation, Rank at_first, Nanoseconds patience) {
  return generation == 0 ? at_first : number_from(board.get(again_key(generation), patience));
}

// Where nobody tells a process its generation.
std::uint64_t find_generation(Rendezvous& board, const Place& place, Nanoseconds patience) {
  const Instant deadline = steady_now() + patience;
  std::uint64_t latest = 0;
  const auto begin_next = [&](Rank members) {
    board.put(again_key(latest + 1), std::to_string(members));
    return latest + 1;
  };
  for (;;) {
    while (has_come(board, latest + 1, 1ms)) ++latest;
    const auto first_card = find(board, cards_in(scope_of(latest)) + "0");
    const Rank members = first_card ? read_card(*first_card).size : members_of(board, latest, place.size, 1ms);
    if (place.rank >= members) {
      if (grows(find(board, grows_key(latest)))) return begin_next(place.size);
    } else {
      const bool is_broken = find(board, broken_key(latest)).has_value();
      if (!is_broken && !find(board, cards_in(scope_of(latest)) + std::to_string(place.rank))) return latest;
      const auto lost = read_list(find(board, lost_key(latest)).value_or(""));
      if (is_broken || std::ranges::count(lost, place.rank) > 0) return begin_next(members);
    }
    const Nanoseconds left = deadline - steady_now();
    if (left <= Nanoseconds(0)) break;
    has_come(board, latest + 1, std::min(left, kLookEach));
  }
  const std::string rank = show_ranks(std::vector<Rank>{place.rank});
  if (!find(board, cards_in(scope_of(latest)) + std::to_string(place.rank))) {
    throw Error(Code::peer_lost, rank + " would be one more than there are, and those take nobody beside them", "join",
                "members with tables do, in shoal.again(): give it the rank of one that is lost, or wait for them");
  }
  throw Error(Code::invalid_argument, rank + " is there, and the others have not lost it", "join",
              "give every member a rank of its own; whoever comes in place of a lost one gets that one's");
}

// Whom a generation waits for may be lost, too: then the next one has begun, and this one will never be complete. Who waits learns it by its patience, or
// earlier, when one of the next generation has come to the board (mismatch, as also where members differ: then no generation has begun).
std::unique_ptr<Job> join_in_generation(Place place, const std::string& secret, const JoinOptions& options, bool has_launcher,
                                        const std::stop_token& stop = {}) {
  for (;; ++place.generation) {
    try {
      return join_as_client(place, secret, options, stop);
    } catch (const Error& error) {
      const bool misses = error.code() == Code::peer_lost || error.code() == Code::timeout;
      if (!misses && error.code() != Code::mismatch) throw;
      CoordinatorClient at(secret, place.coordinator, options.patience, place.job);
      Stoppable board(at, stop);
      const bool another_may_come = misses && !has_launcher && place.generation > 0;
      if (another_may_come) board.put(broken_key(place.generation), "1");
      if (!has_come(board, place.generation + 1, another_may_come ? options.patience : kAnotherLoss)) throw;
      place.size = members_of(board, place.generation + 1, place.size, options.patience);
    }
  }
}

}  // namespace

std::string show_list(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

std::vector<Rank> read_list(const std::string& text) {
  std::vector<Rank> ranks;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    Rank rank = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, rank);
    if (error == std::errc{} && stop == text.data() + end) ranks.push_back(rank);
    at = end + 1;
  }
  return ranks;
}

std::unique_ptr<Job> join_or_come(Place place, const std::string& secret, const JoinOptions& options) {
  bool has_launcher = false;
  {
    CoordinatorClient board(secret, place.coordinator, options.patience, place.job);
    has_launcher = find(board, kLauncherKey).has_value();
    if (!has_launcher && options.on_peer_lost == OnPeerLost::regrow) {
      throw Error(Code::unsupported, "only `shoal run` starts others for a run that goes on meanwhile", "SHOAL_ON_PEER_LOST", "set rejoin, or shrink");
    }
    if (!has_launcher) {
      place.generation = find_generation(board, place, options.patience);
      place.size = members_of(board, place.generation, place.size, options.patience);
    }
  }
  return join_in_generation(std::move(place), secret, options, has_launcher);
}

std::unique_ptr<Job> join_again(const Place& before, const std::vector<Rank>& lost, const JoinOptions& given) { return join_again(before, lost, given, {}); }

void tell_lost(const Place& in, const std::vector<Rank>& lost) {
  CoordinatorClient(find_secret().value_or(""), in.coordinator, with_environment({}).patience, in.job).put(lost_key(in.generation), show_list(lost));
}

std::unique_ptr<Job> join_again(const Place& before, const std::vector<Rank>& lost, const JoinOptions& given, const std::stop_token& stop) {
  const JoinOptions options = with_environment(given);
  const std::string secret = find_secret().value_or("");
  Place place = before;
  ++place.generation;
  bool has_launcher = false;
  {
    CoordinatorClient at(secret, place.coordinator, options.patience, place.job);
    Stoppable board(at, stop);
    has_launcher = find(board, kLauncherKey).has_value();
    const auto next = find(board, again_key(place.generation));
    const bool grows = next && number_from(*next) > before.size;  // who is missing has gone there
    if (!lost.empty() && !grows) board.put(lost_key(before.generation), show_list(lost));
    if (lost.empty() && !has_come(board, place.generation, kToldByThen)) {
      throw Error(Code::peer_lost, "no later generation of this run has begun: it is over, or nobody is left who trains", "join");
    }
    if (!has_come(board, place.generation, options.patience)) {
      throw Error(Code::peer_lost, "nobody has come in place of " + show_ranks(lost) + " within " + show_seconds(Seconds(options.patience).count()),
                  "join", "is the host there? SHOAL_JOIN_TIMEOUT sets the time");
    }
    place.size = members_of(board, place.generation, place.size, options.patience);
  }
  return join_in_generation(place, secret, options, has_launcher, stop);
}

std::optional<Rank> wait_for_more(const Place& in, const std::stop_token& stop) try {
  CoordinatorClient at(find_secret().value_or(""), in.coordinator, with_environment({}).patience, in.job);
  Stoppable board(at, stop);
  board.put(grows_key(in.generation), "yes");
  try {
    return number_from(board.get(again_key(in.generation + 1), kAsLongAsTheyWork));
  } catch (const Error& error) {
    if (error.code() != Code::cancelled) throw;
    at.put(grows_key(in.generation), "no");
    const auto come = find(at, again_key(in.generation + 1));  // before that
    return come ? std::optional(number_from(*come)) : std::nullopt;
  }
} catch (const Error&) {
  return {};
}

bool grows(const std::optional<std::string>& said) { return said == "yes"; }

}  // namespace shoal::net

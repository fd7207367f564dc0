#include "shoal/net/again.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "shoal/core/text.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/environment.h"
#include "shoal/net/job.h"
#include "shoal/net/loop.h"
#include "shoal/net/meet.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kAnotherLoss = 2s;  // for the launcher to have noticed it
constexpr Nanoseconds kToldByThen = 10s;  // the same of one that is silent: others find that first, and tell
constexpr Nanoseconds kLookEach = 250ms;  // at what members say of their losses
constexpr Nanoseconds kAsLongAsTheyWork = 24h * 365;
constexpr Nanoseconds kBoardIsBack = 2s;
constexpr const char* kYes = "yes";

std::optional<std::string> find(Rendezvous& board, const std::string& key, Nanoseconds patience = 1ms) {
  try {
    return board.get(key, patience);
  } catch (const Error& error) {
    if (error.code() != Code::timeout) throw;
    return {};
  }
}
bool has_come(Rendezvous& board, std::uint64_t generation, Nanoseconds patience) { return find(board, again_key(generation), patience).has_value(); }

std::uint64_t number_from(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string waits_key(std::uint64_t attempt, Rank rank) { return "waits/" + std::to_string(attempt) + "/" + std::to_string(rank); }
std::string comes_key(std::uint64_t attempt) { return "comes/" + std::to_string(attempt); }
std::string card_key(std::uint64_t generation, Rank rank) { return cards_in(scope_of(generation)) + std::to_string(rank); }

// One of the first has been told it, too.
Rank members_of(Rendezvous& board, std::uint64_t generation, Rank told, Nanoseconds patience) {
  const auto said = generation == 0 ? find(board, kFirstKey) : board.get(again_key(generation), patience);
  return said ? static_cast<Rank>(number_from(*said)) : told;
}

// Where nobody tells a process its generation: the one in which it has a place, begun by it where that has to be. Of who is one more than there are it is known
// before that it is like the others.
std::uint64_t find_or_begin_generation(CoordinatorClient& board, const Place& place, const std::string& secret, const JoinOptions& options) {
  const Instant deadline = steady_now() + options.patience;
  std::uint64_t latest = 0;
  bool is_more = false;
  for (;;) {
    while (has_come(board, latest + 1, 1ms)) ++latest;
    const Rank members = members_of(board, latest, place.size, 1ms);
    is_more = place.rank >= members;
    std::optional<Rank> of_next;
    if (is_more) {
      if (place.rank == members && find(board, grows_key(latest)) == kYes) {
        Card mine = card_of(place, secret, options);
        mine.size = members;
        check_equal(read_card(board.get(card_key(latest, 0), options.patience)), 0, mine, place.rank);
        of_next = members + 1;
      }
    } else {
      const bool is_broken = find(board, broken_key(latest)).has_value();
      if (!is_broken && !find(board, card_key(latest, place.rank))) return latest;
      const auto lost = read_list(find(board, lost_key(latest)).value_or(""));
      if (is_broken || std::ranges::count(lost, place.rank) > 0) of_next = members;
    }
    if (of_next && number_from(board.put_first(again_key(latest + 1), std::to_string(*of_next))) > place.rank) return latest + 1;
    const Nanoseconds left = deadline - steady_now();
    if (left <= Nanoseconds(0)) break;
    has_come(board, latest + 1, std::min(left, kLookEach));
  }
  const std::string rank = show_ranks(std::vector<Rank>{place.rank});
  if (is_more) {
    throw Error(Code::peer_lost, rank + " would be one more than there are, and those take nobody beside them, or not this one yet", "join",
                "members with tables do, in shoal.again(), one rank after the other");
  }
  throw Error(Code::invalid_argument, rank + " is there, and the others have not lost it", "join",
              "give every member a rank of its own; whoever comes in place of a lost one gets that one's");
}

// Started by the launcher for a run that goes on: the launcher ends who waits in vain.
void wait_to_come(CoordinatorClient& board, Place& place, std::uint64_t attempt, const std::string& secret, const JoinOptions& options) {
  board.put(waits_key(attempt, place.rank), write_card(card_of(place, secret, options)));
  place.generation = number_from(board.get(comes_key(attempt), kAsLongAsTheyWork));
}

// Of the members before this generation, who has not come to it.
std::vector<Rank> not_there(Rendezvous& board, std::uint64_t generation, Rank before) {
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < before; ++rank) {
    if (!find(board, card_key(generation, rank))) missing.push_back(rank);
  }
  return missing;
}

// Whom a generation waits for may be lost, too: then the next one has begun, and this one will never be complete. Who waits learns it by its patience, or
// earlier, when one of the next generation has come to the board (mismatch, as also where members differ: then no generation has begun). Where more come the
// links of before are gone, and nobody else hears that a member is silent: who has not come in time is lost, and its launcher is told so.
std::unique_ptr<Job> join_in_generation(Place place, const std::string& secret, const JoinOptions& options, bool has_launcher,
                                        const std::stop_token& stop = {}) {
  for (;; ++place.generation) {
    JoinOptions here = options;
    Rank before = place.size;
    try {
      if (place.generation > 0) {
        CoordinatorClient at(secret, place.coordinator, options.patience, place.job);
        Stoppable board(at, stop);
        before = members_of(board, place.generation - 1, place.size, options.patience);
        place.size = members_of(board, place.generation, place.size, options.patience);
        if (place.size > before) here.patience = std::max(options.patience, options.a_step);
      }
      return join_as_client(place, secret, here, stop);
    } catch (const Error& error) {
      const bool misses = error.code() == Code::peer_lost || error.code() == Code::timeout;
      if (!misses && error.code() != Code::mismatch) throw;
      CoordinatorClient at(secret, place.coordinator, options.patience, place.job);
      Stoppable board(at, stop);
      const bool another_may_come = misses && !has_launcher && place.generation > 0;
      if (another_may_come) board.put(broken_key(place.generation), "1");
      Nanoseconds by_then = another_may_come ? options.patience : kAnotherLoss;
      if (misses && has_launcher && place.size > before) {
        if (const auto missing = not_there(board, place.generation, before); !missing.empty()) board.put(lost_key(place.generation - 1), show_list(missing));
        by_then = kToldByThen;
      }
      if (!has_come(board, place.generation + 1, by_then)) throw;
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
    if (const auto attempt = variable(kJoinsVariable); has_launcher && attempt) {
      wait_to_come(board, place, number_from(*attempt), secret, options);
    }
    if (!has_launcher) place.generation = find_or_begin_generation(board, place, secret, options);
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
    const auto begun = find(board, again_key(place.generation));
    const bool is_larger = begun && number_from(*begun) > before.size;
    std::vector<Rank> really_lost = lost;
    if (is_larger) std::erase(really_lost, Rank{0});
    if (!really_lost.empty()) board.put(lost_key(before.generation), show_list(really_lost));
    if (lost.empty() && !has_come(board, place.generation, kToldByThen)) {
      throw Error(Code::peer_lost, "no later generation of this run has begun: it is over, or nobody is left who trains", "join");
    }
    if (!has_come(board, place.generation, options.patience)) {
      throw Error(Code::peer_lost, "nobody has come in place of " + show_ranks(lost) + " within " + show_seconds(Seconds(options.patience).count()),
                  "join", "is the host there? SHOAL_JOIN_TIMEOUT sets the time");
    }
  }
  return join_in_generation(place, secret, options, has_launcher, stop);
}

std::optional<Rank> wait_for_more(const Place& in, const std::stop_token& stop) {
  const std::string next = again_key(in.generation + 1);
  while (!stop.stop_requested()) {
    try {
      CoordinatorClient at(find_secret().value_or(""), in.coordinator, kBoardIsBack, in.job);
      Stoppable board(at, stop);
      board.put(grows_key(in.generation), kYes);
      try {
        return number_from(board.get(next, kAsLongAsTheyWork));
      } catch (const Error& error) {
        if (error.code() != Code::cancelled) throw;
        at.put(grows_key(in.generation), "no");
        const auto come = find(at, next);  // before that
        return come ? std::optional(static_cast<Rank>(number_from(*come))) : std::nullopt;
      }
    } catch (const Error&) {
      Loop::shared().drive([&] { return stop.stop_requested(); }, steady_now() + kLookEach);
    }
  }
  return {};
}

bool takes_more(const Coordinator& board, std::uint64_t generation) { return board.find(grows_key(generation)) == kYes; }
bool waits(const Coordinator& board, std::uint64_t attempt, Rank rank) { return board.find(waits_key(attempt, rank)).has_value(); }

void require_alike(const Coordinator& board, std::uint64_t attempt, Rank rank, std::uint64_t generation) {
  const Card of_0 = read_card(board.find(card_key(generation, 0)).value_or(""));
  Card card = read_card(board.find(waits_key(attempt, rank)).value_or(""));
  card.size = of_0.size;
  check_equal(of_0, 0, card, rank);
}

bool begin_with_more(Coordinator& board, std::uint64_t attempt, std::uint64_t next, Rank members) {
  if (!board.put_where(again_key(next), std::to_string(members), grows_key(next - 1), kYes)) return false;
  board.put(comes_key(attempt), std::to_string(next));
  return true;
}

}  // namespace shoal::net

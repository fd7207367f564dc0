#include "shoal/net/again.h"

#include <algorithm>
#include <charconv>

#include "shoal/core/text.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/job.h"
#include "shoal/net/meet.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kAnotherLoss = 2s;  // for the launcher to have noticed it

bool has_come(Rendezvous& board, std::uint64_t generation, Nanoseconds patience) {
  try {
    board.get(again_key(generation), patience);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::timeout) throw;
    return false;
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

// Whom a generation waits for may be lost, too: then the next one has begun, and this one will never be complete.
std::unique_ptr<Job> join_in_generation(Place place, const std::string& secret, const JoinOptions& options) {
  for (;; ++place.generation) {
    try {
      return join_as_client(place, secret, options);
    } catch (const Error&) {
      CoordinatorClient board(secret, place.coordinator, options.patience, place.job);
      if (!has_come(board, place.generation + 1, kAnotherLoss)) throw;
    }
  }
}

std::unique_ptr<Job> join_again(const Place& before, const std::vector<Rank>& lost, const JoinOptions& given) {
  const JoinOptions options = with_environment(given);
  const std::string secret = find_secret().value_or("");
  Place place = before;
  ++place.generation;
  {
    CoordinatorClient board(secret, place.coordinator, options.patience, place.job);
    board.put(lost_key(before.generation), show_list(lost));
    if (!has_come(board, place.generation, options.patience)) {
      throw Error(Code::peer_lost, "nobody has come in place of " + show_ranks(lost) + " within " + show_seconds(Seconds(options.patience).count()),
                  "join", "is the host there? SHOAL_JOIN_TIMEOUT sets the time");
    }
  }
  return join_in_generation(place, secret, options);
}

}  // namespace shoal::net

// Members that come later: in place of lost ones, or beside those that there are.
#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "app/launching.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::app {
namespace {

constexpr Nanoseconds look_at_joining = std::chrono::milliseconds(200);

}  // namespace

// Where the others wait for it, or can do with it, and can still tell it where they are.
void Launcher::replace_lost() {
  generations_->look();
  for (unsigned rank = 0; rank < belonging(); ++rank) {
    const Member& member = members_[rank];
    if (member.ended || member.pid <= 0 || !generations_->given_up(rank, member)) continue;
    member.in ? signal_keeper(member, SIGKILL) : ending_.tell_group(member.pid, SIGKILL);  // it is stopped, or cut off
  }
  const bool over = living() == 0 || std::ranges::any_of(members_, succeeded);
  if (over) return generations_->over();
  const auto next = generations_->next(members_, failures_);
  if (next == Generations::Next::wait) return;
  if (next == Generations::Next::end) {
    if (!generations_->may(failures_.size())) console_.say(fmt::format("shoal: members were replaced {} times, which is the most (--restarts)", generations_->replaced()));
    fork_server_.reset();
    if (what_.waits_for_others) return settle(settle_time);
    console_.say("shoal: from here on nobody is started in a lost member's place, and those who are left go on");
    return generations_->stop();
  }
  generations_->begin();
  for (const unsigned rank : failures_) {
    console_.say(fmt::format("shoal: rank {} was lost: {}; another is started in its place", rank, describe(members_[rank])));
    drain(rank);
    replaced_.push_back(std::exchange(members_[rank], Member{}));
    members_[rank].log = std::move(replaced_.back().log);
    start(rank, {.generation = generations_->latest()});
  }
  generations_->begun(std::exchange(failures_, {}).size(), belonging());
}

// They are started, and wait until they all do and the others take them: then they belong to the next generation. If one ends before, who asked for them hears
// that, and nobody else has had to do with them.
void Launcher::take_more() {
  next_look_at_joining_ = steady_now() + look_at_joining;
  if (!more_) {
    if (failures_.empty() && generations_->takes_more()) start_more();
    return;
  }
  const auto those = std::span(members_).first(belonging());
  const bool over = std::ranges::all_of(those, &Member::ended) || std::ranges::any_of(those, succeeded);
  if (over) return do_without_more(Error(Code::invalid_argument, "the run is over", what_.folder.string()));
  bool all_wait = true;
  for (unsigned rank = belonging(); rank < what_.members; ++rank) {
    if (members_[rank].ended) {
      drain(rank);
      const std::string said = console_.last_error(rank);
      return do_without_more(Error(Code::peer_lost, fmt::format("rank {}, which was to join, has ended: {}{}{}", rank, describe(members_[rank]), said.empty() ? "" : ": ", said)));
    }
    all_wait = all_wait && generations_->waits(more_->attempt, rank);
  }
  if (joining_->is_withdrawn(more_->request)) return do_without_more(Error(Code::cancelled, "nobody asks for it any more", "shoal join"));
  if (all_wait && failures_.empty()) begin_with_more();
}

void Launcher::start_more() {
  const auto request = joining_->look();
  if (!request) return;
  try {
    more_ = More{*request, std::exchange(what_, with_more(what_, *request)), ++attempts_};
  } catch (const Error& error) {
    return joining_->refuse(*request, error);
  }
  members_.resize(what_.members);
  console_.resize(what_.members);
  try {
    for (unsigned rank = belonging(); rank < what_.members; ++rank) {
      open_log(rank);
      start(rank, {.attempt = more_->attempt});
    }
  } catch (const Error& error) {
    do_without_more(error);
  }
}

void Launcher::begin_with_more() {
  if (!generations_->takes_more()) return;  // what they are at must end first; and if that is all, so do these
  std::vector<unsigned> ranks(what_.members - belonging());
  std::iota(ranks.begin(), ranks.end(), belonging());
  try {
    for (const unsigned rank : ranks) generations_->require_alike(more_->attempt, rank);
  } catch (const Error& error) {
    return do_without_more(error);
  }
  if (!generations_->begin_with_more(more_->attempt, what_.members)) return;
  for (const unsigned rank : ranks) members_[rank].generation = generations_->latest();
  console_.say(fmt::format("shoal: {} join{}: {}", show_count(ranks.size(), "members"), ranks.size() == 1 ? "s" : "", show_ranks(ranks)));
  joining_->answer(more_->request, show_ranks(ranks));
  more_.reset();
}

void Launcher::do_without_more(const Error& why) {
  const unsigned first = belonging();
  joining_->refuse(more_->request, why);
  for (unsigned rank = first; rank < what_.members; ++rank) {
    Member& member = members_[rank];
    if (member.pid > 0 && !member.ended) member.in ? signal_keeper(member, SIGKILL) : ending_.tell_group(member.pid, SIGKILL);
    drain(rank);
    if (member.pid > 0) replaced_.push_back(std::move(member));
  }
  members_.resize(first);
  console_.resize(first);
  what_ = std::move(more_->before);
  more_.reset();
}

}  // namespace shoal::app

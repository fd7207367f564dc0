// Members that come later: in place of lost ones, or beside those that there are.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/launching.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::app {

// Where the others wait for it, or can do with it, and can still tell it where they are.
void Launcher::replace_lost() {
  replacing_->look();
  for (unsigned rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (member.ended || member.pid <= 0 || !replacing_->given_up(rank, member)) continue;
    member.in ? signal_keeper(member, SIGKILL) : ending_.tell_group(member.pid, SIGKILL);  // it is stopped, or cut off
  }
  const bool over = living() == 0 || std::ranges::any_of(members_, [](const Member& m) { return m.ended && m.status == 0; });
  if (over) return replacing_->over();
  const auto next = replacing_->next(members_, failures_);
  if (next == Replacing::Next::wait) return;
  if (next == Replacing::Next::end) {
    if (!replacing_->may(failures_.size())) console_.say(fmt::format("shoal: members were replaced {} times, which is the most (--restarts)", replacing_->replaced()));
    if (what_.waits_for_others) return settle(settle_time);
    console_.say("shoal: from here on nobody is started in a lost member's place, and those who are left go on");
    return replacing_->stop();
  }
  replacing_->begin();
  for (const unsigned rank : failures_) {
    console_.say(fmt::format("shoal: rank {} was lost: {}; another is started in its place", rank, describe(members_[rank])));
    drain(rank);
    replaced_.push_back(std::exchange(members_[rank], Member{}));
    members_[rank].log = std::move(replaced_.back().log);
    start(rank, replacing_->generation());
  }
  begin_with_more();
  replacing_->begun(std::exchange(failures_, {}).size(), what_.members);
}

// They are started, and wait in the next generation: then it begins. Who asks for them has an answer when it does, or one of them has ended before.
void Launcher::take_more() {
  if (more_) {
    bool all_wait = true;
    for (unsigned rank = more_->before.members; rank < what_.members; ++rank) {
      if (members_[rank].ended) return do_without_more(describe(members_[rank]) + ": " + console_.last_error(rank));
      all_wait = all_wait && replacing_->waits(rank);
    }
    if (!replacing_->takes_more()) return do_without_more("the work of the others is over");
    if (!all_wait) return;
    replacing_->begin();
    begin_with_more();
    return replacing_->begun(0, what_.members);
  }
  if (!failures_.empty() || !replacing_->takes_more()) return;
  const auto request = joining_->look();
  if (!request) return;
  try {
    more_ = More{*request, std::exchange(what_, with_more(what_, *request))};
  } catch (const Error& error) {
    return joining_->refuse(*request, error);
  }
  members_.resize(what_.members);
  console_.grow(what_.members);
  for (unsigned rank = more_->before.members; rank < what_.members; ++rank) {
    open_log(rank);
    start(rank, replacing_->generation() + 1);
  }
}

void Launcher::begin_with_more() {
  if (!more_) return;
  std::vector<unsigned> ranks(what_.members - more_->before.members);
  std::iota(ranks.begin(), ranks.end(), more_->before.members);
  console_.say(fmt::format("shoal: {} join{}: rank{} {}", show_count(ranks.size(), "members"), ranks.size() == 1 ? "s" : "", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", ")));
  joining_->answer(more_->request, fmt::format("{}", fmt::join(ranks, ", ")));
  more_.reset();
}

void Launcher::do_without_more(const std::string& why) {
  const unsigned first = more_->before.members;
  std::erase_if(failures_, [first](unsigned rank) { return rank >= first; });
  joining_->refuse(more_->request, Error(Code::peer_lost, "who was to join has ended: " + why, what_.folder.filename()));
  for (unsigned rank = first; rank < what_.members; ++rank) {
    drain(rank);
    Member& member = members_[rank];
    if (!member.ended) member.in ? signal_keeper(member, SIGKILL) : ending_.tell_group(member.pid, SIGKILL);
    replacing_->forget(rank);
    replaced_.push_back(std::move(member));
  }
  members_.resize(first);
  what_ = std::move(more_->before);
  more_.reset();
}

}  // namespace shoal::app

#include "shoal/nn/group/monitored_barrier.h"

#include <algorithm>
#include <utility>

#include "shoal/core/text.h"
#include "shoal/nn/group/failure.h"

namespace shoal::nn {

MonitoredBarrier::MonitoredBarrier(net::Transport& transport, Notes& notes)
    : transport_(transport), notes_(notes), entered_by_(transport.size()) {
  notes_.on(NoteKind::arrived, [this](net::Rank from, const Note& note) {
    entered_by_[from] = note.number;
    let_go();
  });
  notes_.on(NoteKind::leave, [this](net::Rank, const Note& note) {
    if (open_ && open_->number == note.number) end(nullptr);
  });
}

void MonitoredBarrier::enter(Nanoseconds patience, bool all_missing, net::Done done) {
  if (open_) return done(failure_of(Error(Code::invalid_argument, "a monitored barrier of this group is already open")));
  const std::uint64_t number = ++entered_;
  open_ = Open{number, all_missing, patience, std::move(done), 0};
  open_->deadline = transport_.at(transport_.now() + patience, [this] { timed_out(); });
  if (transport_.rank() != 0) {
    notes_.send(0, {NoteKind::arrived, 0, number, 0});
    return;
  }
  entered_by_[0] = number;
  let_go();
}

void MonitoredBarrier::let_go() {
  if (!open_ || transport_.rank() != 0) return;
  const std::uint64_t number = open_->number;
  if (std::any_of(entered_by_.begin(), entered_by_.end(), [&](std::uint64_t at) { return at < number; })) return;
  for (net::Rank to = 1; to < transport_.size(); ++to) notes_.send(to, {NoteKind::leave, 0, number, 0});
  end(nullptr);
}

void MonitoredBarrier::timed_out() {
  std::vector<bool> there(transport_.size(), true);
  if (transport_.rank() == 0) {
    for (net::Rank rank = 0; rank < there.size(); ++rank) {
      there[rank] = entered_by_[rank] >= open_->number;
      if (!there[rank] && !open_->all_missing) break;
    }
  }
  const std::string missing = missing_ranks(there);
  const std::string within = " within " + show_seconds(Seconds(open_->patience).count());
  end(failure_of(Error(Code::timeout, missing.empty() ? "rank 0 has not let this member go on" + within : missing + " not come" + within,
                       "monitored_barrier")));
}

void MonitoredBarrier::end(const net::Failure& why) {
  if (!open_) return;
  const Open ended = std::move(*open_);
  open_.reset();
  transport_.cancel(ended.deadline);
  ended.done(why);
}

std::string missing_ranks(const std::vector<bool>& there) {
  std::vector<net::Rank> missing;
  for (net::Rank rank = 0; rank < there.size(); ++rank) {
    if (!there[rank]) missing.push_back(rank);
  }
  if (missing.empty()) return "";
  return show_ranks(missing) + (missing.size() == 1 ? " has" : " have");
}

}  // namespace shoal::nn

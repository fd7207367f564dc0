#include "shoal/nn/regrowth.h"

#include <algorithm>
#include <utility>

#include "shoal/net/again.h"
#include "shoal/net/call.h"

namespace shoal::nn {

void Regrowth::look_for(const net::Place& now, const std::vector<net::Rank>& lost) {
  if (lost == told_lost_) return;
  told_lost_ = lost;
  const bool has_begun = next_ || coming_.under_way();
  has_begun ? coming_.tell(now, lost) : coming_.begin(now, lost);
}

std::string Regrowth::ready(const std::vector<net::Rank>& here) {
  ready_for_ = Stage::train;
  said_.clear();
  if (!next_) {
    auto job = coming_.take();
    if (!job) return "";
    next_ = std::make_shared<SessionGroup>(std::move(job), channels_.survivors);
  }
  if (to_do_ != Stage::move) {  // else it stays at that, whoever is lost in the meantime
    const auto seen = net::call(next_->job->transport(), [survivors = next_->survivors] { return std::pair(survivors->members(), survivors->ahead()); });
    if (!seen) return "";
    const auto& [there, waiting] = *seen;  // for the state
    // Somebody was lost, or has left it for that reason; or it has ended here: there is one more, in which all can be.
    if (!std::ranges::includes(there, here) || next_->job->transport().failure()) {
      look_for_another();
      return "";
    }
    const bool all_wait = std::ranges::all_of(there, [&](net::Rank r) { return std::ranges::binary_search(here, r) || std::ranges::binary_search(waiting, r); });
    if (!all_wait) return "";
    if (there.size() < next_->job->place().size) {  // who comes has begun anew, and follows nobody
      feed_.reset();
      to_do_ = Stage::train;
    } else if (to_do_ != Stage::feed) {
      ready_for_ = Stage::feed;
    } else if (!feed_ || feed_->is_behind()) {
      return "";
    }
    ahead_ = there;
  }
  if (ready_for_ != Stage::feed) ready_for_ = Stage::move;
  said_ = (ready_for_ == Stage::feed ? "feed " : "move to ") + std::to_string(next_->job->place().generation) + ":" + net::show_list(ahead_);
  return said_;
}

void Regrowth::heard(const std::vector<std::string>& said) {
  const bool all_alike = std::ranges::count(said, said_) == std::ssize(said);
  if (all_alike && !said_.empty()) to_do_ = ready_for_;
}

void Regrowth::begin_feed(net::Rank giver, net::Rank givers, std::vector<net::Rank> lost, const collective::Feed::Parts& state, Nanoseconds patience) {
  fed_ = lost;
  feed_ = std::make_unique<collective::Feed>(next_->job->transport(), std::move(lost), net::operation_in(channels_.feed, 0), collective::Feed::Share{giver, givers});
  feed_->give(state, patience);
}

void Regrowth::feed(const collective::Feed::Parts& piece, Nanoseconds patience) {
  if (!feed_->give(piece, patience)) look_for_another();
}

bool Regrowth::tells(net::Rank rank, const std::vector<net::Rank>& members) const {
  const auto first = std::ranges::find_if(members, [this](net::Rank r) { return std::ranges::count(fed_, r) == 0; });
  return feed_ && first != members.end() && *first == rank;
}

std::shared_ptr<SessionGroup> Regrowth::take_next() {
  to_do_ = Stage::train;
  told_lost_.clear();
  return std::exchange(next_, nullptr);
}

void Regrowth::look_for_another() {
  const net::Place place = next_->job->place();
  forget_next();
  coming_.begin(place, {});
}

void Regrowth::forget_next() {
  to_do_ = Stage::train;
  feed_.reset();
  next_.reset();
}

}  // namespace shoal::nn

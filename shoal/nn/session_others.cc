// Others in place of members that were lost: how those who are left move to a job with them, and how they come by the state.
#include <algorithm>
#include <string_view>
#include <utility>

#include "shoal/net/again.h"
#include "shoal/net/call.h"
#include "shoal/nn/session.h"

namespace shoal::nn {
namespace {

constexpr std::string_view kHasIt = "has it ";  // begins what those say who have the state, before a digest where they fed others

// What is done from here on is done by some of the members alone, in this order.
class Among {
 public:
  Among(collective::Runner*& of, std::vector<net::Rank> members) : of_(of), all_(of), some_(all_->among(std::move(members))) { of_ = some_.get(); }
  ~Among() {
    of_ = all_;
    collective::let_go(some_);
  }
  Among(const Among&) = delete;

 private:
  collective::Runner*& of_;
  collective::Runner* const all_;
  std::shared_ptr<collective::Runner> some_;
};

}  // namespace

std::vector<net::Rank> Session::missing() const {
  std::vector<net::Rank> lost;
  const auto left = members();
  for (net::Rank r = 0; r < size(); ++r) {
    if (!std::binary_search(left.begin(), left.end(), r)) lost.push_back(r);
  }
  return lost;
}

void Session::join_anew() {
  next_ = group_over(join_again_(job().place(), missing(), {}));
  move_to_next();
}

bool Session::move_on() {
  if (moves_) {
    if (feed_) feed(carried_.write_last());
    move_to_next();
    feed_.reset();
    return true;
  }
  begins_feed_ = false;
  feed_ = std::make_unique<Feed>(next_->job->transport(), missing(), net::operation_in(feed_channel_, 0));
  feed(carried_.write());
  return false;
}

void Session::move_to_next() {
  moves_ = begins_feed_ = false;
  for (net::Rank r = 0; r < size(); ++r) links_before_[r] = link(r);
  enter(std::exchange(next_, nullptr));
  generation_ = generation_at(0);
  link_model_.reset();  // to be measured with those that came
  bring_state(false);
}

// What this member says with a step: the generation that it could move on to, and who is in it; nothing: none. From here to the step's outcome it keeps that.
std::string Session::group_to_come() {
  if (!next_) {
    auto job = coming_->take();
    if (!job) return "";
    next_ = group_over(std::move(job));
  }
  const net::Place place = next_->job->place();
  const auto said = [&] { return std::to_string(place.generation) + ":" + net::show_list(ahead_); };
  if (moves_) return said();
  const auto seen = net::call(next_->job->transport(), [survivors = next_->survivors] { return std::pair(survivors->members(), survivors->ahead()); });
  if (!seen) return "";
  const auto& [there, waiting] = *seen;  // for the state
  const auto here = members();
  if (!std::ranges::includes(there, here)) {  // somebody was lost, or has left it for that reason: there is one more, in which all can be
    feed_.reset();
    begins_feed_ = false;
    next_.reset();
    coming_->begin(place, {});
    return "";
  }
  const bool all_wait = std::ranges::all_of(there, [&](net::Rank r) { return std::ranges::binary_search(here, r) || std::ranges::binary_search(waiting, r); });
  if (!all_wait) return "";
  if (there.size() < size()) {  // who comes has begun anew, and follows nobody: the state is brought when all have moved
    feed_.reset();
    begins_feed_ = false;
  } else if (here.front() == rank()) {
    begins_feed_ = !feed_;
    if (begins_feed_ || feed_->is_behind()) return "";
  }
  ahead_ = there;
  return said();
}

void Session::look_for_others() {
  if (taking_over_ || living() == size()) return;
  auto lost = missing();
  if (lost == told_missing_) return;
  told_missing_ = lost;
  const bool has_begun = next_ || coming_->under_way();
  has_begun ? coming_->tell(job().place(), std::move(lost)) : coming_->begin(job().place(), std::move(lost));
}

void Session::arrive() {
  if (!arriving_) return;
  {
    const Inside taking_over(taking_over_);
    generation_ = generation_at(0);
    while (!bring_state(true)) {
      if (!regrows()) throw Error(Code::peer_lost, "all members that had the state were lost before another had taken it over", "rejoin");
      has_followed_ = false;
      enter(group_over(join_again_(job().place(), {}, {})));  // they have gone on to a later one, as somebody was lost on the way to this
      generation_ = generation_at(0);
    }
  }
  arriving_ = false;
}

// Those who came have followed it to the bits of who fed them, or get it from the first member that has it, along the chain of them. The others have nothing
// to do but hold what these do: they wait for its outcome.
bool Session::bring_state(bool here) {
  std::string state;
  bool found = false, brought = false;
  together("the state for those that came", [&] {
    if (here && regrows() && living() == size() && !has_followed_) follow();
    const std::string digest = feed_ || has_followed_ ? std::to_string(carried_.digest()) : "";
    const auto said = gather_text(here ? digest : std::string(kHasIt) + digest, "who has the state");
    const auto first = std::ranges::find_if(said, [](const std::string& text) { return text.starts_with(kHasIt); });
    found = first != said.end();
    if (!found) return;
    const auto fed = std::ranges::find_if(said, [](const std::string& text) { return text.starts_with(kHasIt) && text.size() > kHasIt.size(); });
    const std::string digest_of_all = fed == said.end() ? "" : fed->substr(kHasIt.size());
    std::vector<net::Rank> chain{members()[static_cast<std::size_t>(first - said.begin())]};
    for (std::size_t p = 0; p < said.size(); ++p) {
      const bool has_it = said[p].starts_with(kHasIt) || (!said[p].empty() && said[p] == digest_of_all);
      if (!has_it) chain.push_back(members()[p]);
    }
    brought = here && std::ranges::count(chain, rank()) > 0;
    if (chain.size() == 1 || std::ranges::count(chain, rank()) == 0) return;
    state = rank() == chain.front() ? carried_.write() : "";  // a script's functions run: while this is the whole session
    const Among among(runner_, chain);
    std::uint64_t size = state.size();
    broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, "the state's size");
    state.resize(size);
    broadcast(std::as_writable_bytes(std::span(state)), 0, "the state");
  });
  has_followed_ = has_followed_ && !brought;
  if (brought) carried_.take(state);
  return found;
}

// Until all move. What this member cannot do is brought to it instead, outside of what it does together with the others: they would fail with it.
void Session::follow() {
  try {
    Follower follower(transport(), net::operation_in(feed_channel_, 0));
    carried_.take(follower.next());
    while (!carried_.follow(follower.next())) {
    }
    has_followed_ = true;
  } catch (const Error& error) {
    if (error.code() == Code::peer_lost) throw;
  } catch (const std::exception&) {
  }
}

}  // namespace shoal::nn

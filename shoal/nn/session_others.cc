// Others in place of members that were lost: how those who are left move to a job with them, and how they come by the state.
#include <algorithm>
#include <string_view>
#include <utility>

#include "shoal/core/text.h"
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

void Session::join_anew() { move_to(group_over(join_again_(job().place(), missing(), {}))); }

void Session::wait_for_more() {
  waits_for_more_ = true;
  if (rank() != 0 || more_ || !rejoins()) return;
  more_ = std::make_unique<More>();
  more_->waiting = std::jthread([more = more_.get(), of = group()](const std::stop_token& stop) {
    const net::Place& here = of->job->place();
    const auto members = net::wait_for_more(here, stop);
    if (!members || *members <= here.size) return;  // others come in place of somebody who is lost
    more->have_come = true;
    net::Transport& transport = of->job->transport();
    const Error why(Code::peer_lost, "rank 0 meets " + show_count(*members - here.size, "members") + " more in this run");
    net::call(transport, [&transport, why] { transport.fail(why); });
  });
}

Session::More::~More() {
  if (::getpid() != owner) static_cast<void>(new std::jthread(std::move(waiting)));  // a forked child does not have this thread
}

void Session::stop_waiting_for_more() {
  waits_for_more_ = false;
  if (more_) more_->waiting = {};  // asked to stop, and waited for; who has come by then is met
}

bool Session::move_on() {
  if (regrowth_->is_to_feed()) {
    carried_.show_fed([this](const collective::Feed::Parts& state) { regrowth_->begin_feed(place(), living(), missing(), state, patience_); });
  }
  if (!regrowth_->is_to_move()) return false;
  if (regrowth_->feeds_last()) {
    const std::string last = carried_.write_last();
    regrowth_->feed_last({std::as_bytes(std::span(last))}, patience_);
  }
  move_to(regrowth_->take_next());
  regrowth_->end_feed();
  return true;
}

void Session::move_to(std::shared_ptr<SessionGroup> next) {
  for (net::Rank r = 0; r < size(); ++r) links_before_[r] = link(r);
  more_.reset();
  enter(std::move(next));
  links_before_.resize(size());
  generation_ = generation_at(0);
  link_model_.reset();  // to be measured with those that came
  bring_state(false);
  if (waits_for_more_) wait_for_more();  // from here on this group can be left for another
}

void Session::look_for_others() {
  if (regrowth_ && !taking_over_ && living() < size()) regrowth_->look_for(job().place(), missing());
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
  Bytes state;
  bool found = false, brought = false;
  together("the state for those that came", [&] {
    std::unique_ptr<collective::Follower> follower;  // to the end: who gives does not wait for one that has given up
    if (here && regrows() && living() == size() && !has_followed_) {
      follower = std::make_unique<collective::Follower>(transport(), net::operation_in(feed_channel_, 0));
      follow(*follower);
    }
    const bool tells = here ? has_followed_ : feeds() && regrowth_->tells(rank(), members());
    const std::string digest = tells ? std::to_string(carried_.digest()) : "";
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
    const bool gives = rank() == chain.front();
    std::string written = gives ? carried_.write() : "";  // a script's functions run: while this is the whole session
    const Among among(runner_, chain);
    std::uint64_t size = written.size();
    broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, "the state's size");
    if (!gives) state = Bytes(size);
    broadcast(gives ? std::as_writable_bytes(std::span(written)) : std::span(state), 0, "the state");
  });
  has_followed_ = has_followed_ && !brought;
  if (brought) carried_.take(state);
  return found;
}

// Until all move. What this member cannot do is brought to it instead, outside of what it does together with the others: they would fail with it.
void Session::follow(collective::Follower& follower) {
  try {
    carried_.take(follower.next());
    while (!carried_.follow(follower.next())) {
    }
    has_followed_ = true;
    return;
  } catch (const Error& error) {
    if (error.code() == Code::peer_lost) throw;
  } catch (const std::exception&) {
  }
  follower.give_up();
}

}  // namespace shoal::nn

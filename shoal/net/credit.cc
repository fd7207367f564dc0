#include "shoal/net/credit.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "shoal/core/packed_words.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFirstWindow = 1024 * 1024;  // until the rate is known
constexpr std::uint64_t kMinWindow = 64 * 1024, kMaxWindow = 32 * 1024 * 1024;
// What passes between an arrival and the next granted byte beside the network: both members' wake-ups. Found by trying:
// while receives wait for the window, a rate below the best seen means that it is too small, else it may shrink a little.
constexpr Nanoseconds kWakeUp = 1ms;       // a member that has bytes to send has sent some by then
constexpr Nanoseconds kFirstStale = 100ms;  // until the rate is known
constexpr Seconds kLeastReaction = 2ms, kMostReaction = 10ms;  // without queues
constexpr Nanoseconds kMostQueued = 50ms;  // of a round trip: longer ones are of members that stood still
constexpr double kGrow = 1.25, kShrink = 0.95, kFull = 0.95;
// A stream whose receives are smaller than this, or that fits the eager allowance as a whole, is served by that alone: no
// grant, no extra message.
constexpr std::uint64_t kSmall = kEagerStream / 2;
constexpr Nanoseconds kRateSample = 50ms, kRateMean = 200ms, kRateLife = 5s;

}  // namespace

bool EagerBudget::consumed(std::uint64_t total) {
  if (total > sent_) return false;
  consumed_ = std::max(consumed_, total);
  return true;
}

void CreditPolicy::enqueue(Demand& demand) {
  if (demand.queued || demand.order.priority.cls == Class::urgent) return;
  if (demand.posted <= std::max(demand.granted, demand.received)) return;
  const bool comes_unasked = demand.posted <= static_cast<std::int64_t>(kEagerStream) ||
                             demand.posted - demand.granted < static_cast<std::int64_t>(kSmall);
  if (comes_unasked && !demand.asked) return;
  demand.queued = true;
  turn_ = std::max(turn_, demand.order.arrival);
  queue_.emplace(demand.order, &demand);
}

// Streams of equal priority take turns: if one sender had the whole window, the others' links would idle meanwhile, and
// members that send to each other would wait in a circle.
std::uint64_t CreditPolicy::fair_share(Queue::const_iterator first, std::uint64_t limit) const {
  const auto key = [](const Demand& d) { return std::tuple(d.order.priority.cls, d.order.priority.value, d.order.priority.iteration); };
  std::uint64_t equals = 0;
  for (auto at = first; at != queue_.end() && key(*at->second) == key(*first->second); ++at) ++equals;
  return limit / equals;
}

void CreditPolicy::posted(Demand& demand, std::uint64_t bytes) {
  demand.posted += static_cast<std::int64_t>(bytes);
  enqueue(demand);
}

void CreditPolicy::arrived(Demand& demand, std::uint64_t bytes, Instant now) {
  const bool was_open = open(demand) > 0;
  demand.received += static_cast<std::int64_t>(bytes);
  demand.dry = false;
  sender(demand.peer).heard = now;
  limited_ = limited_ && full_;
  if (was_open && open(demand) == 0) closes(demand);
  measure(demand.peer, bytes, now);
}

void CreditPolicy::asked(Demand& demand, std::uint64_t offset) {
  if (demand.received != static_cast<std::int64_t>(offset)) shift(demand, offset);
  demand.asked = true;
  enqueue(demand);
}

void CreditPolicy::shift(Demand& demand, std::uint64_t offset) {
  closes(demand);
  demand.posted += static_cast<std::int64_t>(offset) - demand.received;
  demand.granted = demand.received = static_cast<std::int64_t>(offset);
  enqueue(demand);
}

void CreditPolicy::forget(Demand& demand) {
  closes(demand);
  demand.granted = demand.received;
  if (demand.queued) queue_.erase({demand.order, &demand});
  demand.queued = false;
}

Nanoseconds CreditPolicy::stale() const {
  if (rate_.best == 0) return kFirstStale;
  return kWakeUp + std::chrono::duration_cast<Nanoseconds>(Seconds(static_cast<double>(window()) / rate_.best));
}

Nanoseconds CreditPolicy::stale(Rank peer) const {
  return std::max(stale(), kWakeUp + (peer < senders_.size() ? 2 * senders_[peer].round_trip : Nanoseconds(0)));
}

void CreditPolicy::look_who_stands(Instant now) {
  for (Demand* const demand : open_) {
    demand->stands = demand->dry || now - std::max(demand->begun, sender(demand->peer).heard) >= stale(demand->peer);
  }
}

bool CreditPolicy::may_come_to_stand() const {
  return !queue_.empty() && std::ranges::any_of(open_, [](const Demand* demand) { return !demand->stands; });
}

std::vector<Granted> CreditPolicy::collect(Instant now) {
  std::vector<Granted> grants;
  full_ = false;
  if (queue_.empty()) return grants;
  const std::uint64_t limit = window();
  std::uint64_t used = outstanding(now);
  // Few large grants rather than many small ones: each is a message.
  const std::uint64_t least = std::max(kSmall, limit / 4);
  for (auto at = queue_.begin(); at != queue_.end() && used < limit;) {
    Demand& demand = *at->second;
    // A dry one has some in advance, so that its sender need not wait for word when it has something.
    if (open(demand) > 0 && demand.stands && (!demand.dry || open(demand) >= least)) {
      ++at;
      continue;
    }
    const std::int64_t from = std::max(demand.granted, demand.received);
    const std::uint64_t want = demand.posted > from ? static_cast<std::uint64_t>(demand.posted - from) : 0;
    Sender& from_whom = sender(demand.peer);
    const std::uint64_t most = !link_ || from_whom.rate.best == 0 ? limit : std::min(limit, window_at(2 * from_whom.rate.best));
    const std::uint64_t room = most - std::min(most, from_whom.outstanding);
    if (room < std::min(want, most / 4)) {  // its link has enough, another's may not
      full_ = true;
      ++at;
      continue;
    }
    std::uint64_t give = std::min({want, limit - used, std::max(least, fair_share(at, limit)), room});
    if (give < std::min({want, least, room})) {
      full_ = true;
      break;
    }
    if (give < want && give > kPackedBlock) give -= give % kPackedBlock;  // what is cut between numbers is not packed
    from_whom.outstanding += give;
    if (give > 0 && open(demand) == 0) {
      demand.begun = now;
      demand.dry = demand.stands = false;
      open_.push_back(&demand);
    }
    demand.granted = from + static_cast<std::int64_t>(give);
    used += give;
    if (give > 0) grants.push_back({demand.peer, demand.tag, static_cast<std::uint64_t>(demand.received),
                                    static_cast<std::uint64_t>(demand.granted)});
    at = queue_.erase(at);
    if (give == want) {
      demand.queued = demand.asked = false;
    } else {  // behind its equals
      demand.order.arrival = ++turn_;
      const auto again = queue_.emplace(demand.order, &demand).first;
      if (at == queue_.end() || *again < *at) at = again;
    }
  }
  full_ = full_ || (used >= limit && !queue_.empty());
  return grants;
}

std::uint64_t CreditPolicy::window() const {
  if (!link_) return kMaxWindow;
  return rate_.best == 0 ? kFirstWindow : window_at(rate_.best);
}

std::uint64_t CreditPolicy::window_at(double rate) const {
  const double bytes = rate * (2 * Seconds(round_trip_) + reaction_).count();
  return std::clamp(static_cast<std::uint64_t>(bytes), kMinWindow, kMaxWindow);
}

void CreditPolicy::round_trip(Rank peer, Nanoseconds latest) { sender(peer).round_trip = std::min(latest, kMostQueued); }

std::uint64_t CreditPolicy::outstanding(Instant now) {
  look_who_stands(now);
  for (Sender& sender : senders_) sender.outstanding = 0;
  std::uint64_t sum = 0;
  for (const Demand* const demand : open_) {
    if (demand->stands) continue;
    sender(demand->peer).outstanding += open(*demand);
    sum += open(*demand);
  }
  return sum;
}

// The highest rate over kRateSample of the last seconds: a window made from the mean would shrink the rate that it is made
// from whenever members are slow for another reason.
void CreditPolicy::measure(Rank from, std::uint64_t bytes, Instant now) {
  if (window_start_ == Instant{} || now - window_start_ > 10 * kRateSample) {
    window_start_ = now;
    window_bytes_ = 0;
    for (Sender& sender : senders_) sender.bytes = 0;
    return;
  }
  window_bytes_ += bytes;
  sender(from).bytes += bytes;
  const Nanoseconds passed = now - window_start_;
  if (passed < kRateSample) return;
  const double sample = static_cast<double>(window_bytes_) / Seconds(passed).count();
  if (window_bytes_ >= kMinWindow) rate_.hear(sample, now);
  for (Sender& sender : senders_) {
    if (sender.bytes > 0) sender.rate.hear(static_cast<double>(std::exchange(sender.bytes, 0)) / Seconds(passed).count(), now);
  }
  const bool full = limited_ && was_limited_;
  was_limited_ = std::exchange(limited_, full_);
  if (full) {
    full_bytes_ += window_bytes_;
    full_time_ += passed;
    if (full_time_ >= kRateMean) adapt(now);
  }
  window_start_ = now;
  window_bytes_ = 0;
}

// Finds the reaction time by trying. Only samples count in which, and before which, something waited for the window all the
// time: after a pause a link that saves up (a token bucket) gives more than its rate. And several make one figure: bytes come
// in pieces as large as a twentieth of a sample. Where data fills a link in both directions, grants wait in the queue of those that go the other way, and the
// two windows are about equal when both directions are full: the time to react is then as long as both queues.
void CreditPolicy::adapt(Instant now) {
  const double mean = static_cast<double>(full_bytes_) / Seconds(full_time_).count();
  reaction_ *= mean < kFull * full_rate_.best ? kGrow : kShrink;
  Nanoseconds queued{};
  for (const Sender& sender : senders_) queued = std::max(queued, sender.round_trip);
  reaction_ = std::clamp(reaction_, kLeastReaction, kMostReaction + 2 * Seconds(queued));
  full_rate_.hear(mean, now);
  full_bytes_ = 0;
  full_time_ = {};
}

void CreditPolicy::Best::hear(double rate, Instant now) {
  if (rate < best && now - when <= kRateLife) return;
  best = rate;
  when = now;
}

}  // namespace shoal::net

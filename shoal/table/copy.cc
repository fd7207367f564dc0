#include "shoal/table/copy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/addressed.h"
#include "shoal/table/finite.h"

namespace shoal::table {

template <class T>
Copy<T>::Copy(const Spec& spec, const Workers& workers, net::Rank rank, const Placement& placement, std::vector<Holders> holders, const Surroundings& around)
    : spec_(spec), workers_(workers), first_worker_(workers.first_of(rank)), placement_(placement), send_(around.send),
      now_([this, now = around.now] { return turns_ ? turns_->now(now()) : now(); }), id_(id_of(spec)), of_servers_(around.of_servers),
      bodies_(around.bodies), holders_(std::move(holders)), clocks_(workers.count_of(rank)),
      base_(spec.width, placement, clocks_.size(), around.most_copies), flushes_(clocks_.size()),
      added_(spec.width, spec.encoding, placement, static_cast<std::uint32_t>(clocks_.size()), around.bodies),
      under_way_(placement.shards(), around.most_under_way), heard_(placement.shards(), clocks_.size()),
      orphanings_(clocks_.size()), dynamic_(clocks_.size()), write_gate_(spec.rule, placement, clocks_.size()), consistency_(spec.consistency) {}

template <class T>
void Copy<T>::keep_order(std::unique_ptr<Order> order, const std::function<void()>& again) {
  std::function<void()> moved;
  if (order->replays()) {
    moved = [this, again] {
      arrivals_.fetch_add(1, std::memory_order_release);
      again();
    };
  }
  turns_ = std::make_unique<Turns>(std::move(order), std::move(moved));
}

// --- what servers say

template <class T>
void Copy<T>::take(net::Rank from, Message message) {
  if (!turns_) return hear(from, std::move(message));
  const Order::Event event{source_of_messages(from), print_of(message)};
  turns_->comes(event, [this, from, message = std::move(message)]() mutable { hear(from, std::move(message)); });
}

template <class T>
void Copy<T>::hear(net::Rank from, Message message) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + what, "table " + spec_.name, "run the same program on all members");
  };
  const std::size_t shard = message.header.shard;
  if (shard >= placement_.shards() || !std::ranges::count(placement_.servers(), from)) refuse("rows, and is no server");
  const bool in_part = message.header.kind == Kind::changes;
  const std::string fault = in_part ? fault_of(message, base_.columns(), sizeof(T))
                                    : fault_of(message, encoded_bytes(spec_.encoding, spec_.width, sizeof(T)));
  if (!fault.empty()) refuse(fault);
  {
    const std::lock_guard lock(mutex_);
    telemetry_.heard(message);
    if (message.header.kind == Kind::rows) message = decoded<T>(spec_.encoding, std::move(message), spec_.width);
    switch (message.header.kind) {
      case Kind::rows:
        heard_.takes(shard);
        if (holders_[shard].first() != from) break;
        base_.take(shard, message, pushes(consistency_), now_());
        drop(false);
        break;
      case Kind::changes: {
        if (holders_[shard].first() != from) break;
        const auto own = added_.counted(shard, message.header.clock, message.header.sequence);
        base_.change(shard, message, own, now_());
        drop(false);
        break;
      }
      case Kind::stamp: give_back(from, shard, message); break;
      case Kind::visible:
        holders_[shard].sees(from, message.header.sequence);
        write_gate_.seen(shard, holders_[shard].seen());
        break;
      case Kind::clocks:
        if (message.header.count != workers_.size()) refuse(std::to_string(message.header.count) + " clocks");
        holders_[shard].hear_each(from, message.keys());
        break;
      default: take_clock(shard, from, message); break;
    }
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::take_clock(std::size_t shard, net::Rank from, const Message& message) {
  change_holders(shard, [&](Holders& holders) { holders.hear(from, message.header); });
  settle(shard, message.header.clock >= holders_[shard].announced() ? now_() : Instant{});  // else rows of that age have not left
  if (message.header.kind == Kind::flushed) meet(message.header.clock);
}

template <class T>
void Copy<T>::settle(std::size_t shard, Instant told) {
  Holders& holders = holders_[shard];
  base_.announce(shard, holders.announced(), told);
  base_.met(shard, holders.first_flushes());
  dynamic_.rises(base_.slowest(), now_());
  added_.count_in(shard, holders.announced(), holders.counted(), [&](const Part<T>& part) { base_.fold(part); });
  under_way_.counted(shard, holders.counted());
  write_gate_.seen(shard, holders.seen());
  send_early(shard);
  while (const auto keys = holders.take_assigned()) base_.forget(*keys);  // an answer to an older request may have come meanwhile
}

// All servers have told of as many barriers: the workers are at the clock of the last.
template <class T>
void Copy<T>::meet(Clock clock) {
  met_ = std::max(met_, clock);
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), most = 0;
  for (const Holders& holders : holders_) {
    least = std::min(least, holders.flushes());
    most = std::max(most, holders.most_flushes());
  }
  if (least < most) return;
  for (Clock& own : clocks_) own = std::max(own, met_);
  const Consistency before = consistency_;
  if (next_) consistency_ = *std::exchange(next_, std::nullopt);
  if (!keeps_copies(before, consistency_)) base_.not_pushed_any_more();
}

template <class T>
void Copy<T>::say(std::size_t shard, std::vector<Message> messages) {
  for (const Message& message : messages) telemetry_.said(message);
  const std::vector<net::Rank> servers = holders_[shard].all();
  for (std::size_t i = 0; i < servers.size(); ++i) say_to(servers[i], shard, i + 1 < servers.size() ? messages : std::move(messages));
}

template <class T>
void Copy<T>::say_to(net::Rank server, std::size_t shard, std::vector<Message> messages) {
  for (Message& message : messages) message.header.shard = static_cast<std::uint16_t>(shard);
  send_(server, std::move(messages));
}

// To any holder, also one from which nothing is read: what is read from it, now or later, has everything. Of the others' rows their own stamps tell.
template <class T>
void Copy<T>::give_back(net::Rank server, std::size_t shard, const Message& stamp) {
  if (!holders_[shard].has(server)) return;         // it has parted
  Message seen = Message::of_kind(Kind::seen, id_, stamp.header.sequence);
  seen.header.heard = stamp.header.heard;
  telemetry_.said(seen);
  say_to(server, shard, alone(std::move(seen)));
}

// --- reading

template <class T>
bool Copy<T>::ready(std::uint32_t worker, std::span<const Key> keys, std::size_t& at) {
  if (!turns_) return look(worker, keys, at).found;
  return turns_->looks(source_of(worker), [&] { return look(worker, keys, at); });
}

// An effect: of the keys some more are there, or some were asked for.
template <class T>
Turns::Look Copy<T>::look(std::uint32_t worker, std::span<const Key> keys, std::size_t& at) {
  const std::lock_guard lock(mutex_);
  const std::size_t before = at;
  // What it has found is of the age that it needs whoever has sent it; how near it is in value that server alone has seen to.
  if (std::exchange(orphanings_[worker], base_.orphanings()) != base_.orphanings() && bound()) at = 0;
  const Clock age = needed(worker);
  Number number = Copies<T>::kNone;
  for (; at < keys.size(); ++at) {
    number = base_.find(keys[at], number + 1);
    if (base_.is_usable(number, age)) {
      base_.use(number, clocks_[worker]);
      continue;
    }
    need(placement_.shard_of(keys[at]));
    const bool asks = !base_.is_coming(number, age, clocks_[worker]) && request(worker, keys.subspan(at));
    return {false, asks || at != before};
  }
  return {sampled_are_near(worker), at != before};
}

template <class T>
Clock Copy<T>::needed(std::uint32_t worker) const {
  return std::holds_alternative<Dssp>(consistency_) ? clocks_[worker] - dynamic_.staleness(worker)
                                                        : needed_age(consistency_, clocks_[worker]);
}

template <class T>
bool Copy<T>::sampled_are_near(std::uint32_t worker) const {
  const auto* const policy = std::get_if<Pssp>(&consistency_);
  if (!policy || clocks_[worker] <= static_cast<Clock>(policy->staleness)) return true;
  const auto others = sampled(*policy, id_, clocks_[worker], first_worker_ + worker, workers_.size());
  return std::ranges::all_of(holders_, [&](const Holders& holders) {
    return !holders.each().empty() && std::ranges::all_of(others, [&](std::uint32_t other) {
      return holders.each()[other] >= clocks_[worker] - static_cast<Clock>(policy->staleness);
    });
  });
}

template <class T>
bool Copy<T>::request(std::uint32_t worker, std::span<const Key> keys) {
  if (!std::ranges::all_of(holders_, [](const Holders& holders) { return holders.first().has_value(); })) return false;  // there will be one, or an end
  const Clock age = needed(worker);
  const std::vector<Key> missing = base_.ask(worker, keys, age, clocks_[worker]);
  auto messages = addressed<T>(placement_, Kind::request, id_, missing, {}, spec_.width * sizeof(T));
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    for (Message& message : messages[shard]) {
      message.header.clock = age;
      message.header.sequence = base_.unsubscribed(shard);
      telemetry_.said(message);
    }
    if (!messages[shard].empty()) say_to(*holders_[shard].first(), shard, std::move(messages[shard]));
  }
  return true;
}

// --- writing

template <class T>
std::optional<double> Copy<T>::bound() const {
  return value_bound(consistency_, base_.slowest());
}

template <class T>
bool Copy<T>::may_add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values) const {
  const std::lock_guard lock(mutex_);
  return write_gate_.may_add(worker, keys, values, bound());
}

template <class T>
void Copy<T>::add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values) {
  std::vector<T> clipped;
  const bool in_one_walk = spec_.not_finite == NotFinite::refuse && has_nothing_open(worker);
  if (!in_one_walk) values = admitted(spec_.not_finite, keys, values, spec_.name, clipped);
  const std::lock_guard lock(mutex_);
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
    if (!added_.is_open(worker, shard)) heard_.begins_part(worker, shard);
  }
  if (!in_one_walk) {
    added_.add(worker, keys, values);
  } else if (!added_.add_if_finite(worker, keys, values)) {
    check_finite(keys, values, spec_.name);
  }
  write_gate_.adds(worker, keys, values, bound());
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) send_early(shard);
}

template <class T>
void Copy<T>::send_open(std::uint32_t worker, Ends ends, Clock clock) {
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) send_part(worker, shard, ends, clock);
}

template <class T>
void Copy<T>::send_part(std::uint32_t worker, std::size_t shard, Ends ends, Clock clock) {
  const auto least = ends == Ends::clock ? insignificant(consistency_, base_.slowest()) : std::nullopt;
  const auto stays = [&](Key key, std::span<const T> sum, Clock since) {
    const Number number = base_.find(key, 0);
    if (clock - since >= longest_stay(consistency_) || number == Copies<T>::kNone) return false;
    return reach(write_gate_.rule(), max_norm(sum)) < *least * root_mean_square(base_.row(number));
  };
  const bool keep = !spec_.rule.steps();
  if (!added_.is_open(worker, shard)) heard_.begins_part(worker, shard);
  std::vector<Message> messages = least ? added_.leave(worker, shard, clock, keep, stays) : added_.leave(worker, shard, clock, keep);
  for (Message& message : messages) {
    message.header.table = id_;
    message.header.worker = first_worker_ + worker;
    message.header.heard = heard_.of_part(worker, shard);
    message = encoded<T>(spec_.encoding, std::move(message), spec_.width, *bodies_);
  }
  messages.back().header.ends = ends;
  write_gate_.leaves(worker, shard, added_.sequence());
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += sizeof(Header) + message.body.size();
  under_way_.leaves(shard, added_.sequence(), bytes);
  say(shard, std::move(messages));
}

// One part of each worker is under way to a server at a time: what is added meanwhile goes in the next.
template <class T>
void Copy<T>::send_early(std::size_t shard) {
  if (!leaves_at_once(consistency_) || added_.is_under_way(shard)) return;
  for (std::uint32_t worker = 0; worker < clocks_.size(); ++worker) {
    if (added_.is_open(worker, shard)) send_part(worker, shard, Ends::batch, clocks_[worker]);
  }
}

template <class T>
void Copy<T>::tick(std::uint32_t worker) {
  const std::lock_guard lock(mutex_);
  const Clock clock = clocks_[worker]++;
  drop(true);                         // ahead of what has servers push
  send_open(worker, Ends::clock, clock);
  if (const auto* dssp = std::get_if<Dssp>(&consistency_)) dynamic_.ticks(worker, clocks_[worker], *dssp, now_());
  if (backups(consistency_) == 0) return;
  clocks_[worker] = std::max(clocks_[worker], base_.newest());  // it was late
}

template <class T>
void Copy<T>::rule(std::uint32_t worker, const Rule& rule) {
  if (!same_kind(rule, spec_.rule)) {
    throw Error(Code::invalid_argument, "a table of " + name(spec_.rule) + " cannot go on with " + name(rule), "table " + spec_.name,
                "another rate is the same rule; another kind needs another table");
  }
  const std::lock_guard lock(mutex_);
  write_gate_.rule(rule);
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
    Message message = Message::of_text(Kind::rule, id_, name(rule));
    message.header.clock = clocks_[worker];
    say(shard, alone(std::move(message)));
  }
}

template <class T>
void Copy<T>::flush(std::uint32_t worker, const std::optional<Consistency>& next) {
  if (next) {
    Spec changed = spec_;
    changed.consistency = *next;
    check(changed, workers_.size());
  }
  const std::lock_guard lock(mutex_);
  next_ = next;
  send_open(worker, Ends::batch, kLastClock);  // of no whole clock
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
    Message message = Message::of_text(Kind::flush, id_, next ? name(*next) : "");
    message.header.worker = first_worker_ + worker;
    message.header.clock = clocks_[worker];
    say(shard, alone(std::move(message)));
  }
  ++flushes_[worker];
}

template <class T>
bool Copy<T>::flushed(std::uint32_t worker) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
    if (holders_[shard].flushes() >= flushes_[worker]) continue;
    if (holders_[shard].gone_before(flushes_[worker])) refuse_left(shard);
    return false;
  }
  return true;
}

template <class T>
void Copy<T>::assign(std::span<const Key> keys, std::span<const T> values) {
  std::vector<T> clipped;
  values = admitted(spec_.not_finite, keys, values, spec_.name, clipped);
  hand_out(Kind::assign, keys, values);
}

template <class T>
void Copy<T>::put(std::span<const Key> keys, std::span<const T> rows) {
  hand_out(Kind::put, keys, rows);
}

template <class T>
void Copy<T>::reset() {
  const std::lock_guard lock(mutex_);
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
    holders_[shard].assigns({});
    Message message = Message::of_kind(Kind::reset, id_);
    message.header.ends = Ends::batch;
    say(shard, alone(std::move(message)));
  }
}

template <class T>
void Copy<T>::hand_out(Kind kind, std::span<const Key> keys, std::span<const T> values) {
  const std::lock_guard lock(mutex_);
  auto messages = addressed<T>(placement_, kind, id_, keys, values, values.size_bytes() / std::max<std::size_t>(1, keys.size()));
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    if (messages[shard].empty()) continue;
    std::vector<Key> written;
    for (const Message& message : messages[shard]) written.insert(written.end(), message.keys().begin(), message.keys().end());
    base_.forget(written);
    holders_[shard].assigns(std::move(written));
    messages[shard].back().header.ends = Ends::batch;
    say(shard, std::move(messages[shard]));
  }
}

template <class T>
std::size_t Copy<T>::assigning() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const Holders& holders : holders_) all += holders.assigning();
  return all;
}

template class Copy<float>;
template class Copy<double>;
template class Copy<std::int32_t>;
template class Copy<std::int64_t>;

}  // namespace shoal::table

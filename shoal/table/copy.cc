#include "shoal/table/copy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/addressed.h"
#include "shoal/table/finite.h"

namespace shoal::table {

template <class T>
Copy<T>::Copy(const Spec& spec, const Workers& workers, net::Rank rank, const Placement& placement, Send send)
    : spec_(spec), workers_(workers), first_worker_(workers.first_of(rank)), placement_(placement), send_(std::move(send)), id_(id_of(spec)),
      base_(spec.width), servers_(placement.shards()) {
  if (first_worker_ == workers.size()) return;  // a member that only serves
  clocks_.resize(workers.a_member());
  asked_.resize(workers.a_member());
  flushes_.resize(workers.a_member());
  open_.resize(workers.a_member());
  for (auto& open : open_) {
    for (std::size_t shard = 0; shard < placement.shards(); ++shard) open.emplace_back(spec.width);
  }
}

// --- what servers say

template <class T>
void Copy<T>::take(net::Rank from, Message message) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + what, "table " + spec_.name, "run the same program on all members");
  };
  std::size_t shard = 0;
  while (shard < placement_.shards() && placement_.server(shard) != from) ++shard;
  if (shard == placement_.shards()) refuse("rows, and is no server");
  if (const std::string fault = fault_of(message, spec_.width * sizeof(T)); !fault.empty()) refuse(fault);
  {
    const std::lock_guard lock(mutex_);
    Server& server = servers_[shard];
    if (message.header.kind == Kind::rows) {
      take_rows(shard, message);
    } else {
      server.announced = std::max(server.announced, message.header.clock);
      server.dropped = message.header.count;
      confirm(server, message.header.clock, message.header.sequence);
      send_early(shard);
      if (message.header.kind == Kind::flushed) {
        ++server.flushes;
        if (std::ranges::all_of(servers_, [&](const Server& other) { return other.flushes >= server.flushes; })) {
          for (Clock& clock : clocks_) clock = std::max(clock, message.header.clock);
        }
      }
      if (message.header.kind == Kind::assigned && !server.assigning.empty()) {
        forget(server.assigning.front());  // an answer to an older request may have come meanwhile
        server.assigning.pop_front();
      }
    }
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::leaves(net::Rank server) {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t shard = 0; shard < servers_.size(); ++shard) servers_[shard].gone |= placement_.server(shard) == server;
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::need(std::size_t shard) const {
  if (!servers_[shard].gone) return;
  throw Error(Code::mismatch, "rank " + std::to_string(placement_.server(shard)) + " has left while its rows are needed", "table " + spec_.name,
              "all members call barrier() after their last use");
}

template <class T>
void Copy<T>::take_rows(std::size_t shard, const Message& message) {
  const auto values = message.values<T>();
  Number number = Rows::kNone;
  for (std::size_t i = 0; i < message.keys().size(); ++i) {
    number = place_of(message.keys()[i], number + 1);
    set<T>(base_.row(number), values.subspan(i * spec_.width, spec_.width));
    State& state = states_[number];
    state.age = message.header.clock;
    state.included = message.header.sequence;
    state.flushes = servers_[shard].flushes;
    state.present = true;
    state.pushed = pushes(spec_.consistency);
    for (auto& asked : asked_) {
      if (asked[number] <= state.age) asked[number] = kNothing;
    }
  }
}

// What the server has counted in goes from sent into the copies that are older, in the order in which the server added it.
template <class T>
void Copy<T>::confirm(Server& server, Clock clock, std::uint64_t sequence) {
  const auto kept = [&](const Part& part) { return part.sequence > sequence && part.clock >= clock; };
  const auto counted = std::stable_partition(server.sent.begin(), server.sent.end(), kept);
  const auto earlier = [](const Part& a, const Part& b) { return std::pair(a.clock, a.worker) < std::pair(b.clock, b.worker); };
  std::stable_sort(counted, server.sent.end(), earlier);
  for (auto part = counted; part != server.sent.end(); ++part) {
    Number number = Rows::kNone;
    for (Number row = 0; base_.size() > 0 && row < part->rows.size(); ++row) {
      number = base_.find(part->rows.key(row), number + 1);
      if (number == Rows::kNone || !states_[number].present || in_base(states_[number], *part)) continue;
      table::add<T>(base_.row(number), part->rows.row(row));
    }
  }
  server.sent.erase(counted, server.sent.end());
  server.counted = std::max(server.counted, sequence);
}

// --- reading

template <class T>
Clock Copy<T>::age_of(const State& state, const Server& server) const {
  return state.pushed ? std::max(state.age, server.announced) : state.age;
}

template <class T>
bool Copy<T>::usable(const State& state, const Server& server, Clock age) const {
  return state.present && (state.pushed || state.flushes == server.flushes) && age_of(state, server) >= age;
}

template <class T>
typename Copy<T>::Number Copy<T>::place_of(Key key, Number near) {
  const Number number = base_.insert(key, near);
  if (number < states_.size()) return number;
  states_.emplace_back();
  for (auto& asked : asked_) asked.push_back(kNothing);
  return number;
}

// Unasked, or because it was asked for: by this worker, or by one whose request does not wait for this one's next tick.
template <class T>
bool Copy<T>::coming(Number number, std::uint32_t worker, Clock age) const {
  if (states_[number].present && states_[number].pushed) return true;
  return std::ranges::any_of(asked_, [&](const auto& asked) { return asked[number] >= age && asked[number] <= clocks_[worker]; });
}

template <class T>
void Copy<T>::ask(std::uint32_t worker, std::span<const Key> keys) {
  const std::lock_guard lock(mutex_);
  request(worker, keys);
}

template <class T>
bool Copy<T>::ready(std::uint32_t worker, std::span<const Key> keys, std::size_t& at) {
  const std::lock_guard lock(mutex_);
  const Clock age = needed_age(spec_.consistency, clocks_[worker]);
  Number number = Rows::kNone;
  for (; at < keys.size(); ++at) {
    number = base_.find(keys[at], number + 1);
    if (number != Rows::kNone && usable(states_[number], servers_[placement_.shard_of(keys[at])], age)) continue;
    need(placement_.shard_of(keys[at]));
    if (number == Rows::kNone || !coming(number, worker, age)) request(worker, keys.subspan(at));
    return false;
  }
  return true;
}

template <class T>
void Copy<T>::request(std::uint32_t worker, std::span<const Key> keys) {
  const Clock age = needed_age(spec_.consistency, clocks_[worker]);
  std::vector<Key> missing;
  Number number = Rows::kNone;
  for (const Key key : keys) {
    number = place_of(key, number + 1);
    if (usable(states_[number], servers_[placement_.shard_of(key)], age) || coming(number, worker, age)) continue;
    asked_[worker][number] = age;
    missing.push_back(key);
  }
  auto messages = addressed<T>(placement_, Kind::request, id_, missing, {}, spec_.width * sizeof(T));
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    for (Message& message : messages[shard]) message.header.clock = age;
    if (!messages[shard].empty()) send_(placement_.server(shard), std::move(messages[shard]));
  }
}

template <class T>
Clock Copy<T>::read(std::uint32_t worker, std::span<const Key> keys, std::span<T> values) {
  const std::lock_guard lock(mutex_);
  Clock least = std::numeric_limits<Clock>::max();
  Number number = Rows::kNone;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    number = base_.find(keys[i], number + 1);
    least = std::min(least, age_of(states_[number], servers_[placement_.shard_of(keys[i])]));
    set<T>(values.subspan(i * spec_.width, spec_.width), base_.row(number));
  }
  if (spec_.rule.steps()) return least;
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) {
    for (const Part& part : servers_[shard].sent) {
      if (part.worker == first_worker_ + worker) read_own(shard, keys, part.rows, &part, values);
    }
    read_own(shard, keys, open_[worker][shard], nullptr, values);
  }
  return least;
}

// What a worker added, on top of the copies that lack it. `part`: where it is on its way.
template <class T>
void Copy<T>::read_own(std::size_t shard, std::span<const Key> keys, const Rows& rows, const Part* part, std::span<T> values) const {
  if (rows.size() == 0) return;
  Number number = Rows::kNone, own = Rows::kNone;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (placement_.shard_of(keys[i]) != shard) continue;
    const Number next = rows.find(keys[i], own + 1);
    if (next == Rows::kNone) continue;
    own = next;
    if (part) {
      number = base_.find(keys[i], number + 1);
      if (in_base(states_[number], *part)) continue;
    }
    table::add<T>(values.subspan(i * spec_.width, spec_.width), rows.row(own));
  }
}

// --- writing

template <class T>
void Copy<T>::add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values) {
  check_finite(keys, values, spec_.name);
  const std::lock_guard lock(mutex_);
  std::vector<Rows>& open = open_[worker];
  std::vector<Number> last(open.size(), Rows::kNone);  // by shard
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t shard = placement_.shard_of(keys[i]);
    last[shard] = open[shard].add(keys[i], last[shard] + 1, values.subspan(i * spec_.width, spec_.width));
  }
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) send_early(shard);
}

template <class T>
void Copy<T>::send_open(std::uint32_t worker, Ends ends) {
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) send_part(worker, shard, ends);
}

template <class T>
void Copy<T>::send_part(std::uint32_t worker, std::size_t shard, Ends ends) {
  Server& server = servers_[shard];
  Rows rows = std::exchange(open_[worker][shard], Rows(spec_.width));
  auto bodies = rows.bodies();
  if (bodies.empty()) bodies.emplace_back();  // a batch without rows for this server still closes the clock there
  server.last = ++sequence_;
  std::vector<Message> messages;
  for (auto& body : bodies) {
    Message& message = messages.emplace_back();
    message.header.length = static_cast<std::uint32_t>(body.bytes.size());
    message.header.kind = Kind::update;
    message.header.table = id_;
    message.header.sequence = sequence_;
    message.header.clock = clocks_[worker];
    message.header.worker = first_worker_ + worker;
    message.header.count = static_cast<std::uint32_t>(body.rows);
    message.body = std::move(body.bytes);
  }
  messages.back().header.ends = ends;
  if (rows.size() > 0 && !spec_.rule.steps()) server.sent.push_back({first_worker_ + worker, clocks_[worker], sequence_, std::move(rows)});
  send_(placement_.server(shard), std::move(messages));
}

// One part of each worker is under way to a server at a time: what is added meanwhile goes in the next.
template <class T>
void Copy<T>::send_early(std::size_t shard) {
  if (!leaves_at_once(spec_.consistency) || servers_[shard].counted < servers_[shard].last) return;
  for (std::uint32_t worker = 0; worker < open_.size(); ++worker) {
    if (open_[worker][shard].size() > 0) send_part(worker, shard, Ends::batch);
  }
}

template <class T>
void Copy<T>::tick(std::uint32_t worker) {
  const std::lock_guard lock(mutex_);
  send_open(worker, Ends::clock);
  ++clocks_[worker];
  if (backups(spec_.consistency) == 0) return;
  for (const Server& server : servers_) clocks_[worker] = std::max(clocks_[worker], server.announced);  // it was late
}

template <class T>
void Copy<T>::rule(std::uint32_t worker, const Rule& rule) {
  if (!same_kind(rule, spec_.rule)) {
    throw Error(Code::invalid_argument, "a table of " + name(spec_.rule) + " cannot go on with " + name(rule), "table " + spec_.name,
                "another rate is the same rule; another kind needs another table");
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) {
    Message message = Message::of_text(Kind::rule, id_, name(rule));
    message.header.clock = clocks_[worker];
    send_(placement_.server(shard), alone(std::move(message)));
  }
}

template <class T>
std::uint64_t Copy<T>::dropped() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::max_element(servers_, {}, &Server::dropped)->dropped;
}

template <class T>
bool Copy<T>::may_go_on(std::uint32_t worker) const {
  const auto gap = widest_gap(spec_.consistency);
  if (!gap) return true;
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(servers_, [&](const Server& server) { return clocks_[worker] - server.announced <= *gap; });
}

template <class T>
void Copy<T>::flush(std::uint32_t worker) {
  const std::lock_guard lock(mutex_);
  send_open(worker, Ends::batch);
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) {
    Message message = Message::of_kind(Kind::flush, id_);
    message.header.worker = first_worker_ + worker;
    message.header.clock = clocks_[worker];
    send_(placement_.server(shard), alone(std::move(message)));
  }
  ++flushes_[worker];
}

template <class T>
bool Copy<T>::flushed(std::uint32_t worker) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) {
    if (servers_[shard].flushes >= flushes_[worker]) continue;
    need(shard);
    return false;
  }
  return true;
}

template <class T>
void Copy<T>::assign(std::span<const Key> keys, std::span<const T> values) {
  check_finite(keys, values, spec_.name);
  hand_out(Kind::assign, keys, values);
}

template <class T>
void Copy<T>::put(std::span<const Key> keys, std::span<const T> rows) {
  hand_out(Kind::put, keys, rows);
}

template <class T>
void Copy<T>::reset() {
  const std::lock_guard lock(mutex_);
  for (std::size_t shard = 0; shard < servers_.size(); ++shard) {
    servers_[shard].assigning.emplace_back();
    send_(placement_.server(shard), alone(Message::of_kind(Kind::reset, id_)));
  }
}

template <class T>
void Copy<T>::hand_out(Kind kind, std::span<const Key> keys, std::span<const T> values) {
  const std::lock_guard lock(mutex_);
  auto messages = addressed<T>(placement_, kind, id_, keys, values, values.size_bytes() / std::max<std::size_t>(1, keys.size()));
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    if (messages[shard].empty()) continue;
    std::vector<Key>& written = servers_[shard].assigning.emplace_back();
    for (const Message& message : messages[shard]) written.insert(written.end(), message.keys().begin(), message.keys().end());
    forget(written);
    messages[shard].back().header.ends = Ends::batch;
    send_(placement_.server(shard), std::move(messages[shard]));
  }
}

template <class T>
void Copy<T>::forget(std::span<const Key> keys) {
  for (const Key key : keys) {
    if (const Number number = base_.find(key); number != Rows::kNone) states_[number].present = false;
  }
}

template <class T>
std::size_t Copy<T>::assigning() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const Server& server : servers_) all += server.assigning.size();
  return all;
}

template class Copy<float>;
template class Copy<double>;
template class Copy<std::int32_t>;
template class Copy<std::int64_t>;

}  // namespace shoal::table

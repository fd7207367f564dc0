#include "shoal/table/shard.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::table {
template <class T>
Shard<T>::Shard(const Spec& spec, const Workers& workers, net::Rank members, bool survives, const Surroundings& around)
    : spec_(spec), workers_(workers), send_(around.send), take_cut_(around.take_cut), id_(id_of(spec)), survives_(survives),
      consistency_(spec.consistency), rows_(spec, members, around.cold, around.bodies), rules_(spec.rule), arriving_(workers.size()), clocks_(workers.size()),
      released_(members), readers_({spec_, workers_, clocks_, consistency_, met_, rows_, released_}, members, send_, around.idle, around.now),
      calls_(std::make_shared<Calls<T>>(
          spec_, rows_, around.functions, around.off_loop,
          [this](std::span<const Number> numbers, std::span<const T> values) { return write(numbers, values); },
          [this](net::Rank to, Message message) { send_(to, alone(std::move(message))); })),
      had_(members) {}

template <class T>
void Shard<T>::take(net::Rank from, Message message) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + what, "table " + spec_.name, "run the same program on all members");
  };
  if (readers_.is_lost(from)) return;
  if (calls_->is_busy()) return calls_->later([this, from, message] { take(from, message); });
  const Header& header = message.header;
  const std::size_t bytes = header.kind == Kind::update ? encoded_bytes(spec_.encoding, spec_.width, sizeof(T))
                                                        : (has_state(header.kind) ? rows_.full_width() : spec_.width) * sizeof(T);
  if (const std::string fault = fault_of(message, bytes); !fault.empty()) refuse(fault);
  if (header.kind == Kind::update || header.kind == Kind::flush) {
    if (header.worker >= workers_.size() || workers_.rank_of(header.worker) != from) refuse("an update of worker " + std::to_string(header.worker));
  }
  if (receiving_) return receive(from, std::move(message));
  if (is_written(header.kind) && had_[from] > 0) return void(--had_[from]);
  if (giving_ && is_written(header.kind)) giving_->counts(from);
  switch (header.kind) {
    case Kind::open:
      readers_.admit(from);
      return readers_.announce(from);               // a shard that moved before it opened the table has told it of no clock, and may not rise without it
    case Kind::follow:
      if (giving_ && header.sequence == giving_->number()) giving_->marks(from);
      return go_on_giving();
    case Kind::last:
      if (giving_) giving_->marks(from);
      return go_on_giving();
    case Kind::more:
      if (giving_ && header.sequence == giving_->number()) giving_->wants();
      return go_on_giving();
    case Kind::retire:
      if (header.worker >= workers_.size() || workers_.rank_of(header.worker) != from) refuse("the end of worker " + std::to_string(header.worker));
      clocks_.lose(header.worker, kLastClock);
      if (!meet()) advance(from);
      return;
    case Kind::update: return update(from, decoded<T>(spec_.encoding, std::move(message), spec_.width));
    case Kind::request:
    case Kind::fetch:
    case Kind::call: return request(from, message);
    case Kind::unsubscribe: return readers_.unsubscribe(from, message);
    case Kind::assign: return assign(from, message);
    case Kind::flush:
      if (held_.empty()) return flush(from, message);
      return held_.push_back({from, alone(std::move(message))});
    case Kind::seen:
      if (header.heard != released_.handover()) return;
      if (!released_.came_back(from, header.sequence)) refuse("a stamp that it was not sent");
      return tell_seen();
    case Kind::put:
    case Kind::reset: return put(from, message);
    case Kind::save: return save(from, std::move(message));
    case Kind::rule: {
      const Rule rule = rule_from(message.text());
      if (!same_kind(rule, spec_.rule)) refuse("the rule " + name(rule));
      rules_.set(header.clock, rule);
      return;
    }
    default: refuse("a message of kind " + std::to_string(static_cast<int>(header.kind)));
  }
}

// --- updates

template <class T>
void Shard<T>::update(net::Rank from, Message message) {
  const Header header = message.header;
  Batch& arriving = arriving_[header.worker];
  arriving.push_back(std::move(message));
  if (header.ends == Ends::nothing) return;
  Batch batch = std::exchange(arriving, {});
  if (!withholds(consistency_)) return count_in(from, std::move(batch));
  held_.push_back({from, std::move(batch)});
  count_in_held();
}

template <class T>
void Shard<T>::count_in(net::Rank from, Batch batch) {
  const Header header = batch.back().header;
  readers_.closes(header, from, !whole_clocks(consistency_));
  if (value_bound(consistency_, clocks_.slowest())) {
    released_.release(from, header.sequence, withholds(consistency_) ? amounts(batch) : std::vector<Amount>{});
  }
  take_batch(from, header, std::move(batch));
  if (header.ends == Ends::clock) clocks_.complete(header.worker, header.clock);
  advance(from);
}

template <class T>
void Shard<T>::take_batch(net::Rank from, const Header& last, Batch batch) {
  const Clock clock = last.clock;
  const bool empty = std::ranges::all_of(batch, [](const Message& part) { return part.header.count == 0; });
  if (empty && last.ends == Ends::batch) return;    // a barrier: it takes no part in this clock's mean
  if (whole_clocks(consistency_)) {
    if (clock < clocks_.slowest()) {
      if (!empty) readers_.drops(from);
    } else {
      std::ranges::move(batch, std::back_inserter(pending_[clock][last.worker]));
    }
    return;
  }
  const Rule& rule = rules_.at(clock);
  const bool later = clocked(consistency_) && !rule.steps();
  for (const Message& part : batch) {
    if (!rule.steps() && !later) {
      for_each_run(part, [&](Number first, std::size_t count, std::span<const T> values) { rows_.add(first, count, values, from); });
      continue;
    }
    for_each_row(part, [&](Number number, std::span<const T> values) {
      rule.steps() ? rows_.step(rule, number, values, 1, readers_.shown(from, number, last.heard)) : rows_.overlay(number, values, from);
    });
  }
  if (later) std::ranges::move(batch, std::back_inserter(pending_[clock][last.worker]));
}

template <class T>
void Shard<T>::advance(net::Rank from) {
  if (!rise() && !pushes_at_once(consistency_)) return readers_.announce(from);  // what it has sent is counted in
  readers_.tell_all();
}

template <class T>
bool Shard<T>::rise() {
  if (undecided_ || !clocks_.rise(backups(consistency_))) return false;
  rows_.rises(clocks_.slowest());
  settle_through(clocks_.slowest());
  rules_.forget_before(clocks_.slowest() - (survives_ ? widest_gap(consistency_).value_or(0) + 1 : 0));  // it may have to go back
  answer_waiting();
  return true;
}

template <class T>
void Shard<T>::settle_through(Clock clock) {
  for (auto due = pending_.begin(); due != pending_.end() && due->first < clock; due = pending_.erase(due)) {
    cut_through(due->first);
    settle(due->first, std::move(due->second));
  }
  cut_through(clock);
}

// A clock can be taken back until all servers must have completed it: nobody runs further ahead of one than the gap.
template <class T>
void Shard<T>::settle(Clock clock, Batches batches) {
  const bool overlaid = !whole_clocks(consistency_);
  if (!cuts_workers()) return add_up(batches, rules_.at(clock), overlaid);
  const Clock gap = widest_gap(consistency_).value_or(0), slowest = clocks_.slowest();
  while (!settled_.empty() && settled_.front().until + gap + 1 < slowest) forget_first_settled();
  Settled& settled = settled_.emplace_back(Settled{clock, slowest, met_, rules_.at(clock), std::move(batches), RowMap<T>(rows_.full_width())});
  rows_.keep_in(&settled.before);
  add_up(settled.batches, settled.rule, overlaid);
  rows_.keep_in(nullptr);
}

// The batches of a clock in the order of workers; overlaid: they are live already.
template <class T>
void Shard<T>::add_up(const Batches& batches, const Rule& rule, bool overlaid) {
  RowMap<T> gradients(spec_.width);                 // of a rule that steps: their sums
  const bool all_alike = spec_.encoding != Encoding::none;  // who added, too, is shown rounded rows
  Number near = RowMap<T>::kNone;
  for (const auto& [worker, batch] : batches) {
    for (const Message& part : batch) {
      if (!rule.steps() && !overlaid) {
        const net::Rank by = all_alike ? OwnedRows<T>::kNobody : workers_.rank_of(worker);
        for_each_run(part, [&](Number first, std::size_t count, std::span<const T> values) { rows_.add(first, count, values, by); });
        continue;
      }
      for_each_row(part, [&](Number number, std::span<const T> values) {
        if (rule.steps()) {
          near = gradients.add(rows_.key(number), near + 1, values);
        } else {
          rows_.settle(number, values);
        }
      });
    }
  }
  for (Number row = 0, number = RowMap<T>::kNone; row < gradients.size(); ++row) {
    number = rows_.number_of(gradients.key(row), number + 1);
    rows_.step(rule, number, gradients.row(row), static_cast<double>(batches.size()), {});  // all of them saw it alike
  }
}

// --- values within a bound

template <class T>
void Shard<T>::count_in_held() {
  while (!held_.empty()) {
    if (calls_->is_busy()) return calls_->later([this] { count_in_held(); });
    Held& next = held_.front();
    const double bound = *value_bound(consistency_, clocks_.slowest());
    if (next.messages.back().header.kind == Kind::update && !released_.fits(amounts(next.messages), bound)) return;
    Held fits = std::move(next);
    held_.pop_front();
    const bool adds = fits.messages.back().header.kind == Kind::update;
    adds ? count_in(fits.from, std::move(fits.messages)) : flush(fits.from, fits.messages.back());
  }
}

template <class T>
std::vector<Amount> Shard<T>::amounts(const Batch& batch) const {
  std::vector<Amount> amounts;
  for (const Message& part : batch) append_amounts(rules_.at(part.header.clock), part.keys(), part.values<T>(), amounts);
  return amounts;
}

template <class T>
void Shard<T>::tell_seen() {
  for (const auto& [origin, sequence] : released_.take_seen()) {
    send_(origin, alone(Message::of_kind(Kind::visible, id_, sequence)));
  }
  count_in_held();
}

template <class T>
void Shard<T>::release_all() {
  if (!value_bound(consistency_, clocks_.slowest())) return;
  for (const net::Rank rank : workers_.ranks()) released_.release(rank, readers_.received(rank), {});
}

template <class T>
void Shard<T>::leaves(net::Rank reader) {
  readers_.leaves(reader);
  released_.leaves(reader);
  tell_seen();
}

// --- readers

template <class T>
void Shard<T>::request(net::Rank from, const Message& message) {
  if (message.header.clock <= clocks_.slowest()) return answer(from, message);
  waiting_.emplace(message.header.clock, std::pair(from, message));
}

template <class T>
void Shard<T>::answer_waiting() {
  for (auto due = waiting_.begin(); due != waiting_.end() && due->first <= clocks_.slowest(); due = waiting_.erase(due)) {
    answer(due->second.first, due->second.second);
  }
}

template <class T>
void Shard<T>::answer(net::Rank to, const Message& request) {
  if (calls_->is_busy()) return calls_->later([this, to, request] { answer(to, request); });
  if (request.header.kind == Kind::call) return calls_->call(to, request, clocks_.slowest());
  if (request.header.kind == Kind::fetch) return send_(to, alone(fetched(rows_, request)));
  readers_.answer(to, request);
}

// --- out of time

template <class T>
void Shard<T>::assign(net::Rank from, const Message& message) {
  std::unordered_set<Number> overlaid;
  for_each_row(message, [&](Number number, std::span<const T> values) { set_out_of_time(number, values, overlaid); });
  if (!overlaid.empty()) lay_anew(overlaid);
  if (message.header.ends == Ends::nothing) return;
  readers_.tell_all();
  readers_.announce(from, Kind::assigned);
}

template <class T>
void Shard<T>::set_out_of_time(Number number, std::span<const T> values, std::unordered_set<Number>& overlaid) {
  rows_.assign(number, values);
  if (rows_.is_overlaid(number)) overlaid.insert(number);
  for (Settled& settled : settled_) {
    const Number kept = settled.before.find(number);
    if (kept != RowMap<T>::kNone) set<T>(settled.before.row(kept).first(spec_.width), values);
  }
}

template <class T>
std::string Shard<T>::write(std::span<const Number> numbers, std::span<const T> values) {
  if (survives_) return "writes rows, which no second holder of them would see; not where a run outlives members (--on-peer-lost fail)";
  std::unordered_set<Number> overlaid;
  for (std::size_t i = 0; i < numbers.size(); ++i) set_out_of_time(numbers[i], values.subspan(i * spec_.width, spec_.width), overlaid);
  if (!overlaid.empty()) lay_anew(overlaid);
  readers_.tell_all();
  return "";
}

template <class T>
void Shard<T>::flush(net::Rank from, const Message& message) {
  const std::string next = message.text();
  if (clocks_.nobody_waits()) next_ = next;
  if (next != next_) {
    const std::string what = "rank " + std::to_string(from) + " switches to \"" + next + "\", and others to \"" + next_ + "\"";
    throw Error(Code::mismatch, what, "table " + spec_.name,
                "all workers switch to the same consistency together");
  }
  clocks_.arrive(message.header.worker, message.header.clock);
  if (!meet()) advance(from);
}

// The last worker at the barrier: everything has come, and all are at the clock of who was furthest.
template <class T>
bool Shard<T>::meet() {
  if (undecided_ || !clocks_.all_arrived()) return false;
  while (!settled_.empty() && settled_.front().met < met_) forget_first_settled();  // all come from the barrier before: it is over everywhere
  clocks_.meet();
  rows_.rises(clocks_.slowest());
  settle_through(std::numeric_limits<Clock>::max());
  ++met_;
  const Consistency before = consistency_;
  if (!next_.empty()) consistency_ = consistency_from(next_);
  release_all();
  if (!keeps_copies(before, consistency_)) rows_.unsubscribe();
  readers_.include_all();
  answer_waiting();
  readers_.end_barrier();
  return true;
}

// The rows whose settled values have changed, or above which less is pending.
template <class T>
void Shard<T>::lay_anew(const std::unordered_set<Number>& touched) {
  for (const Number number : touched) rows_.uncover(number);
  for (const auto& [clock, batches] : pending_) {
    for (const auto& [worker, batch] : batches) {
      for (const Message& part : batch) {
        for_each_row(part, [&, by = workers_.rank_of(worker)](Number number, std::span<const T> values) {
          if (touched.contains(number)) rows_.overlay(number, values, by);
        });
      }
    }
  }
}

template class Shard<float>;
template class Shard<double>;
template class Shard<std::int32_t>;
template class Shard<std::int64_t>;

std::unique_ptr<Server> make_shard(const Spec& spec, const Workers& workers, net::Rank members, bool survives, const Surroundings& around) {
  const auto made = [&]<class T>(T) -> std::unique_ptr<Server> {
    return std::make_unique<Shard<T>>(spec, workers, members, survives, around);
  };
  switch (spec.type) {
    case DType::f32: return made(float{});
    case DType::f64: return made(double{});
    case DType::i32: return made(std::int32_t{});
    default: return made(std::int64_t{});
  }
}

}  // namespace shoal::table

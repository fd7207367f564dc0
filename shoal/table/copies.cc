#include "shoal/table/copies.h"

#include <algorithm>
#include <utility>

namespace shoal::table {

template <class T>
typename Copies<T>::Number Copies<T>::place(Key key, Number near) {
  const Number number = rows_.insert(key, near);
  if (number == states_.size()) append_state();
  State& state = states_[number];
  if (state.kept) return number;
  state.kept = true;
  state.since = unsubscribed(placement_.shard_of(key));
  ++kept_;
  return number;
}

template <class T>
void Copies<T>::append_state() {
  states_.emplace_back();
  for (auto& asked : asked_) asked.push_back(kNothing);
}

template <class T>
Clock Copies<T>::age(Number number) const {
  const State& state = states_[number];
  return state.pushed ? std::max(state.age, told_[placement_.shard_of(rows_.key(number))].age) : state.age;
}

template <class T>
Instant Copies<T>::told(Number number) const {
  const State& state = states_[number];
  if (!state.pushed) return state.came;
  const Told& server = told_[placement_.shard_of(rows_.key(number))];
  return server.age < state.age ? state.came : std::max(state.came, server.at);
}

template <class T>
bool Copies<T>::is_usable(Number number, Clock age) const {
  if (number == kNone) return false;
  const State& state = states_[number];
  if (!state.present || state.orphan || (!state.pushed && state.meetings != told_[placement_.shard_of(rows_.key(number))].meetings)) return false;
  return this->age(number) >= age;
}

template <class T>
bool Copies<T>::is_coming(Number number, Clock age, Clock clock) const {
  if (number == kNone) return false;
  if (is_as_sent(states_[number]) && states_[number].pushed) return true;
  return std::ranges::any_of(asked_, [&](const auto& asked) { return asked[number] >= age && asked[number] <= clock; });
}

template <class T>
std::vector<Key> Copies<T>::ask(std::uint32_t worker, std::span<const Key> keys, Clock age, Clock clock) {
  std::vector<Key> missing;
  Number number = kNone;
  for (const Key key : keys) {
    number = place(key, number + 1);
    states_[number].last = std::max(states_[number].last, clock);
    if (is_usable(number, age) || is_coming(number, age, clock)) continue;
    asked_[worker][number] = age;
    missing.push_back(key);
  }
  return missing;
}

template <class T>
bool Copies<T>::has(Number number, const Part<T>& part) const {
  return part.is_within(states_[number].age, states_[number].included);
}

template <class T>
void Copies<T>::take(std::size_t shard, const Message& rows, bool pushed, Instant now) {
  const auto values = rows.values<T>();
  const std::size_t width = rows_.width();
  const std::uint64_t oldest = views_->oldest();
  Number number = kNone;
  for (std::size_t i = 0; i < rows.keys().size(); ++i) {
    const Number found = taken(shard, rows.keys()[i], number + 1, rows.header.heard, pushed);
    if (found == kNone) continue;
    number = writable(found, oldest);
    set<T>(rows_.row(number), values.subspan(i * width, width));
    came(shard, number, rows.header, pushed, now);
  }
}

template <class T>
void Copies<T>::change(std::size_t shard, const Message& changes, std::span<const Part<T>* const> own, Instant now) {
  const T* values = values_of<T>(changes);
  const std::uint64_t oldest = views_->oldest();
  Number number = kNone;
  std::vector<Number> near(own.size(), kNone);
  for (std::size_t i = 0; i < changes.keys().size(); ++i) {
    const Key key = changes.keys()[i];
    const Blocks blocks = blocks_of(changes)[i];
    const T* from = std::exchange(values, values + columns_.count(blocks));
    const Number found = taken(shard, key, number + 1, changes.header.heard, true);
    if (found == kNone || !is_as_sent(states_[found])) continue;
    number = writable(found, oldest);
    if (number != found) set<T>(rows_.row(number), rows_.row(found));
    const std::span<T> row = rows_.row(number);
    for (std::size_t of = 0; of < own.size(); ++of) {
      if (has(number, *own[of])) continue;
      const Number added = own[of]->rows.find(key, near[of] + 1);
      if (added == kNone) continue;
      near[of] = added;
      table::add<T>(row, own[of]->rows.row(added));
    }
    columns_.for_each(blocks, [&](std::size_t first, std::size_t count) {
      set<T>(row.subspan(first, count), {from, count});
      from += count;
    });
    came(shard, number, changes.header, true, now);
  }
}

// Where a row of a message goes; none: it is not taken.
template <class T>
typename Copies<T>::Number Copies<T>::taken(std::size_t shard, Key key, Number near, std::uint64_t heard, bool pushed) {
  const Number found = find(key, near);
  if (found == kNone && pushed && heard == told_[shard].unsubscribed) strays_.push_back(key);  // else it has been told, or will be
  return found == kNone || states_[found].since > heard ? kNone : found;
}

template <class T>
void Copies<T>::came(std::size_t shard, Number number, const Header& header, bool pushed, Instant now) {
  State& state = states_[number];
  state.age = header.clock;
  state.included = header.sequence;
  state.meetings = told_[shard].meetings;
  state.came = now;
  state.present = true;
  state.pushed = pushed;
  state.orphan = false;
  if (pushed && ++state.vain % kVain == 0) vain_.push_back(rows_.key(number));
  for (auto& asked : asked_) {
    if (asked[number] <= header.clock) asked[number] = kNothing;
  }
}

template <class T>
void Copies<T>::announce(std::size_t shard, Clock age, Instant told) {
  told_[shard].age = std::max(told_[shard].age, age);
  told_[shard].at = std::max(told_[shard].at, told);
}

template <class T>
Clock Copies<T>::slowest() const {
  return std::ranges::min_element(told_, {}, &Told::age)->age;
}

template <class T>
Clock Copies<T>::newest() const {
  return std::ranges::max_element(told_, {}, &Told::age)->age;
}

template <class T>
void Copies<T>::fold(const Part<T>& part) {
  const std::uint64_t oldest = views_->oldest();
  Number number = kNone;
  for (Number row = 0; rows_.size() > 0 && row < part.rows.size(); ++row) {
    const Number found = find(part.rows.key(row), number + 1);
    if (found == kNone) continue;
    number = found;
    if (!states_[number].present || has(number, part)) continue;
    const Number into = writable(number, oldest);
    if (into != number) set<T>(rows_.row(into), rows_.row(number));
    table::add<T>(rows_.row(into), part.rows.row(row));
  }
}

template <class T>
void Copies<T>::forget(std::span<const Key> keys) {
  for (const Key key : keys) {
    if (const Number number = find(key, 0); number != kNone) states_[number].present = false;
  }
}

template <class T>
void Copies<T>::not_pushed_any_more() {
  for (State& state : states_) state.pushed = false;
}

template <class T>
void Copies<T>::orphan(std::size_t shard) {
  ++orphanings_;
  for (Number number = 0; number < states_.size(); ++number) {
    if (!states_[number].kept || placement_.shard_of(rows_.key(number)) != shard) continue;
    states_[number].orphan = true;
    for (auto& asked : asked_) asked[number] = kNothing;
  }
}

// --- views

template <class T>
View<T> Copies<T>::view(std::size_t rows, Clock clock) {
  close_up_if_worth_it();             // of rows that were replaced, also where nobody ticks
  return {Views::begin(views_), rows_.width(), clock, rows};
}

template <class T>
void Copies<T>::show(View<T>& view, Number number, Clock age) {
  const std::size_t block = rows_.block_of(number);
  if (held_.size() <= block) held_.resize(block + 1);
  const bool is_new = std::exchange(held_[block], view.number()) != view.number();
  view.show(std::as_const(rows_).row(number).data(), age, is_new ? rows_.memory_of(number) : Bytes());
  states_[number].shown = view.number();
}

template <class T>
typename Copies<T>::Number Copies<T>::replace(Number number, std::uint64_t oldest) {
  Number into = kNone;
  if (!behind_.empty() && behind_.front().shown < oldest) {
    into = behind_.front().number;
    behind_.pop_front();
  }
  behind_.push_back({number, states_[number].shown});
  into = rows_.replace(number, into);
  if (into == states_.size()) append_state();
  states_[into] = std::exchange(states_[number], State{});
  states_[into].shown = 0;
  for (auto& asked : asked_) asked[into] = std::exchange(asked[number], kNothing);
  return into;
}

// --- which copies are kept, and which of those that are not are to be pushed no more

template <class T>
bool Copies<T>::is_asked(Number number) const {
  return std::ranges::any_of(asked_, [number](const auto& asked) { return asked[number] != kNothing; });
}

template <class T>
void Copies<T>::use(Number number, Clock clock) {
  State& state = states_[number];
  state.last = std::max(state.last, clock);
  state.vain = 0;
}

template <class T>
void Copies<T>::intend(std::span<const Key> keys, Clock last) {
  Number number = kNone;
  for (const Key key : keys) {
    number = place(key, number + 1);
    State& state = states_[number];
    state.until = std::max(state.until, last);
    if (!std::exchange(state.ends, true)) ending_[last].push_back(key);
  }
}

template <class T>
std::vector<Key> Copies<T>::drop_due(Clock now) {
  std::vector<Key> pushed = std::exchange(strays_, {});
  drop_ended(now, pushed);
  drop_vain(now, pushed);
  return pushed;
}

template <class T>
std::vector<Key> Copies<T>::drop(Clock now, Clock age) {
  std::vector<Key> pushed = drop_due(now);
  if (kept_ >= look_at_) {
    drop_old(now, age, pushed);
    drop_surplus(now, pushed);
    look_at_ = std::max(std::min(kFew, most_), 2 * kept_ <= most_ ? 2 * kept_ : std::max(most_, kept_ + kept_ / 2));
  }
  close_up_if_worth_it();
  return pushed;
}

// Unless somebody waits for it, or is about to read it.
template <class T>
void Copies<T>::drop(Number number, Clock now, std::vector<Key>& pushed) {
  State& state = states_[number];
  if (std::max(state.last, state.until) >= now || is_asked(number)) return;
  if (state.pushed && !state.orphan) pushed.push_back(rows_.key(number));
  state = State{.shown = state.shown};
  --kept_;
}

template <class T>
void Copies<T>::drop_ended(Clock now, std::vector<Key>& pushed) {
  while (!ending_.empty() && ending_.begin()->first < now) {
    const std::vector<Key> keys = std::move(ending_.begin()->second);
    ending_.erase(ending_.begin());
    Number number = kNone;
    for (const Key key : keys) {
      const Number found = find(key, number + 1);
      if (found == kNone || !states_[found].ends) continue;
      number = found;
      drop(number, now, pushed);
      if (states_[number].kept) ending_[std::max({states_[number].last, states_[number].until, now})].push_back(key);  // it was read since, or is on its way
    }
  }
}

// Who waits at a barrier has no clocks of its own meanwhile, and goes by those of others.
template <class T>
void Copies<T>::drop_vain(Clock now, std::vector<Key>& pushed) {
  for (const Key key : std::exchange(vain_, {})) {
    const Number number = find(key, 0);
    if (number == kNone || states_[number].vain < kVain) continue;
    const Clock clock = std::max(now, told_[placement_.shard_of(key)].age);
    if (states_[number].last + static_cast<Clock>(kVain) <= clock) drop(number, now, pushed);
  }
}

template <class T>
void Copies<T>::drop_old(Clock now, Clock age, std::vector<Key>& pushed) {
  for (Number number = 0; number < states_.size(); ++number) {
    const State& state = states_[number];
    if (state.kept && (!state.pushed || state.orphan) && state.last + 1 < now && !is_usable(number, age)) drop(number, now, pushed);
  }
}

template <class T>
void Copies<T>::drop_surplus(Clock now, std::vector<Key>& pushed) {
  if (kept_ == 0 || kept_ < most_) return;
  std::vector<Number> numbers;
  for (Number number = 0; number < states_.size(); ++number) {
    if (states_[number].kept) numbers.push_back(number);
  }
  const auto surplus = static_cast<std::ptrdiff_t>(kept_ - most_ / 2);
  std::ranges::nth_element(numbers, numbers.begin() + surplus - 1, {}, [this](Number number) { return std::pair(states_[number].last, number); });
  numbers.resize(static_cast<std::size_t>(surplus));
  for (const Number number : numbers) {
    states_[number].until = kNever;                 // there is no room for what is only intended
    drop(number, now, pushed);
  }
}

template <class T>
void Copies<T>::close_up() {
  RowMap<T> rows(rows_.width());
  Number into = 0;
  for (Number number = 0; number < states_.size(); ++number) {
    if (!states_[number].kept) continue;
    set<T>(rows.row(rows.insert(rows_.key(number), RowMap<T>::kNone)), rows_.row(number));
    states_[into] = states_[number];
    states_[into].shown = 0;                        // there
    for (auto& asked : asked_) asked[into] = asked[number];
    ++into;
  }
  rows_ = std::move(rows);
  held_.clear();
  behind_.clear();
  states_.resize(into);
  states_.shrink_to_fit();
  for (auto& asked : asked_) {
    asked.resize(into);
    asked.shrink_to_fit();
  }
}

template class Copies<float>;
template class Copies<double>;
template class Copies<std::int32_t>;
template class Copies<std::int64_t>;

}  // namespace shoal::table

#include "shoal/table/copies.h"

#include <algorithm>

namespace shoal::table {

template <class T>
typename Copies<T>::Number Copies<T>::place(Key key, Number near) {
  const Number number = rows_.insert(key, near);
  if (number == states_.size()) {
    states_.emplace_back();
    for (auto& asked : asked_) asked.push_back(kNothing);
  }
  State& state = states_[number];
  if (state.kept) return number;
  state.kept = true;
  state.since = unsubscribed(placement_.shard_of(key));
  ++kept_;
  return number;
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
  if (states_[number].present && states_[number].pushed && !states_[number].orphan) return true;
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
  return part.sequence <= states_[number].included || part.clock < states_[number].age;
}

template <class T>
void Copies<T>::take(std::size_t shard, const Message& rows, bool pushed, Instant now) {
  const auto values = rows.values<T>();
  const std::size_t width = rows_.width();
  Number number = kNone;
  for (std::size_t i = 0; i < rows.keys().size(); ++i) {
    const Key key = rows.keys()[i];
    const Number found = find(key, number + 1);
    if (found == kNone || states_[found].since > rows.header.heard) {
      if (found == kNone && pushed && rows.header.heard == told_[shard].unsubscribed) strays_.push_back(key);  // else it has been told, or will be
      continue;
    }
    number = found;
    set<T>(rows_.row(number), values.subspan(i * width, width));
    State& state = states_[number];
    state.age = rows.header.clock;
    state.included = rows.header.sequence;
    state.meetings = told_[shard].meetings;
    state.came = now;
    state.present = true;
    state.pushed = pushed;
    state.orphan = false;
    if (pushed && ++state.vain % kVain == 0) vain_.push_back(key);
    for (auto& asked : asked_) {
      if (asked[number] <= rows.header.clock) asked[number] = kNothing;
    }
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
  Number number = kNone;
  for (Number row = 0; rows_.size() > 0 && row < part.rows.size(); ++row) {
    const Number found = find(part.rows.key(row), number + 1);
    if (found == kNone) continue;
    number = found;
    if (states_[number].present && !has(number, part)) table::add<T>(rows_.row(number), part.rows.row(row));
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
  for (Number number = 0; number < states_.size(); ++number) {
    if (!states_[number].kept || placement_.shard_of(rows_.key(number)) != shard) continue;
    states_[number].orphan = true;
    for (auto& asked : asked_) asked[number] = kNothing;
  }
}

template class Copies<float>;
template class Copies<double>;
template class Copies<std::int32_t>;
template class Copies<std::int64_t>;

}  // namespace shoal::table

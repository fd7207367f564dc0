// Which copies are kept, and which of those that are not are to be pushed no more.
#include <algorithm>
#include <utility>

#include "shoal/table/copies.h"

namespace shoal::table {

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
  if (rows_.size() > 2 * kept_ + kFew) close_up();
  return pushed;
}

// Unless somebody waits for it, or is about to read it.
template <class T>
void Copies<T>::drop(Number number, Clock now, std::vector<Key>& pushed) {
  State& state = states_[number];
  if (std::max(state.last, state.until) >= now || is_asked(number)) return;
  if (state.pushed && !state.orphan) pushed.push_back(rows_.key(number));
  state = State{};
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
    if (state.kept && (!state.pushed || state.orphan) && !is_usable(number, age)) drop(number, now, pushed);
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
    for (auto& asked : asked_) asked[into] = asked[number];
    ++into;
  }
  rows_ = std::move(rows);
  states_.resize(into);
  states_.shrink_to_fit();
  for (auto& asked : asked_) {
    asked.resize(into);
    asked.shrink_to_fit();
  }
}

template bool Copies<float>::is_asked(Number) const;
template void Copies<float>::use(Number, Clock);
template void Copies<float>::intend(std::span<const Key>, Clock);
template std::vector<Key> Copies<float>::drop_due(Clock);
template std::vector<Key> Copies<float>::drop(Clock, Clock);
template void Copies<float>::drop(Number, Clock, std::vector<Key>&);
template void Copies<float>::drop_ended(Clock, std::vector<Key>&);
template void Copies<float>::drop_vain(Clock, std::vector<Key>&);
template void Copies<float>::drop_old(Clock, Clock, std::vector<Key>&);
template void Copies<float>::drop_surplus(Clock, std::vector<Key>&);
template void Copies<float>::close_up();
template bool Copies<double>::is_asked(Number) const;
template void Copies<double>::use(Number, Clock);
template void Copies<double>::intend(std::span<const Key>, Clock);
template std::vector<Key> Copies<double>::drop_due(Clock);
template std::vector<Key> Copies<double>::drop(Clock, Clock);
template void Copies<double>::drop(Number, Clock, std::vector<Key>&);
template void Copies<double>::drop_ended(Clock, std::vector<Key>&);
template void Copies<double>::drop_vain(Clock, std::vector<Key>&);
template void Copies<double>::drop_old(Clock, Clock, std::vector<Key>&);
template void Copies<double>::drop_surplus(Clock, std::vector<Key>&);
template void Copies<double>::close_up();
template bool Copies<std::int32_t>::is_asked(Number) const;
template void Copies<std::int32_t>::use(Number, Clock);
template void Copies<std::int32_t>::intend(std::span<const Key>, Clock);
template std::vector<Key> Copies<std::int32_t>::drop_due(Clock);
template std::vector<Key> Copies<std::int32_t>::drop(Clock, Clock);
template void Copies<std::int32_t>::drop(Number, Clock, std::vector<Key>&);
template void Copies<std::int32_t>::drop_ended(Clock, std::vector<Key>&);
template void Copies<std::int32_t>::drop_vain(Clock, std::vector<Key>&);
template void Copies<std::int32_t>::drop_old(Clock, Clock, std::vector<Key>&);
template void Copies<std::int32_t>::drop_surplus(Clock, std::vector<Key>&);
template void Copies<std::int32_t>::close_up();
template bool Copies<std::int64_t>::is_asked(Number) const;
template void Copies<std::int64_t>::use(Number, Clock);
template void Copies<std::int64_t>::intend(std::span<const Key>, Clock);
template std::vector<Key> Copies<std::int64_t>::drop_due(Clock);
template std::vector<Key> Copies<std::int64_t>::drop(Clock, Clock);
template void Copies<std::int64_t>::drop(Number, Clock, std::vector<Key>&);
template void Copies<std::int64_t>::drop_ended(Clock, std::vector<Key>&);
template void Copies<std::int64_t>::drop_vain(Clock, std::vector<Key>&);
template void Copies<std::int64_t>::drop_old(Clock, Clock, std::vector<Key>&);
template void Copies<std::int64_t>::drop_surplus(Clock, std::vector<Key>&);
template void Copies<std::int64_t>::close_up();

}  // namespace shoal::table

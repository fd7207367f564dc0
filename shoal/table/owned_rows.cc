#include "shoal/table/owned_rows.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace shoal::table {

template <class T>
OwnedRows<T>::OwnedRows(const Spec& spec, net::Rank readers)
    : initial_(spec.initial), readers_(readers), words_((readers + 63) / 64), settled_(spec.width),
      state_(state_width(spec.rule, spec.width)), live_(spec.width) {}

template <class T>
typename OwnedRows<T>::Number OwnedRows<T>::number_of(Key key, Number near) {
  const Number number = settled_.insert(key, near);
  if (number < changed_by_.size()) return number;
  changed_by_.push_back(kNobody);
  live_number_.push_back(RowMap<T>::kNone);
  subscribers_.resize(subscribers_.size() + words_);
  if (!initial_.zero()) {
    const std::span<T> values = settled_.row(number);
    for (std::size_t column = 0; column < values.size(); ++column) values[column] = static_cast<T>(initial_.value(key, column));
  }
  return number;
}

template <class T>
std::span<const T> OwnedRows<T>::visible(Number number) const {
  const Number later = live_number_[number];
  return later == RowMap<T>::kNone || later_[later] == 0 ? settled_.row(number) : live_.row(later);
}

template <class T>
void OwnedRows<T>::add(Number number, std::span<const T> values, net::Rank by) {
  table::add<T>(settled_.row(number), values);
  changed(number, by);
}

template <class T>
void OwnedRows<T>::overlay(Number number, std::span<const T> values, net::Rank by) {
  Number& later = live_number_[number];
  if (later == RowMap<T>::kNone) {
    later = live_.insert(key(number));
    later_.push_back(0);
  }
  if (later_[later]++ == 0) set<T>(live_.row(later), settled_.row(number));
  table::add<T>(live_.row(later), values);
  changed(number, by);
}

template <class T>
void OwnedRows<T>::settle(Number number, std::span<const T> values) {
  table::add<T>(settled_.row(number), values);
  --later_[live_number_[number]];
}

template <class T>
void OwnedRows<T>::step(const Rule& rule, Number number, std::span<const T> gradient, double divisor) {
  if constexpr (std::is_floating_point_v<T>) {
    const std::span<T> state = state_.width() == 0 ? std::span<T>{} : state_.row(state_.insert(key(number)));
    table::step<T>(rule, settled_.row(number), state, gradient, divisor);
    changed(number, kSeveral);  // who added a gradient does not know what became of it
  }
}

template <class T>
void OwnedRows<T>::assign(Number number, std::span<const T> values) {
  std::ranges::copy(values, settled_.row(number).begin());
  changed(number, kSeveral);
  const Number later = live_number_[number];
  if (later != RowMap<T>::kNone) std::ranges::copy(values, live_.row(later).begin());
}

template <class T>
void OwnedRows<T>::lay_again(Number number, std::span<const T> values) {
  table::add<T>(live_.row(live_number_[number]), values);
}

template <class T>
void OwnedRows<T>::changed(Number number, net::Rank by) {
  if (!any_subscriber_) return;
  const auto readers = std::span(subscribers_).subspan(number * words_, words_);
  if (std::ranges::all_of(readers, [](std::uint64_t ranks) { return ranks == 0; })) return;  // who reads it first is sent all of it
  net::Rank& before = changed_by_[number];
  if (before == kNobody) changed_.push_back(number);
  before = before == kNobody || before == by ? by : kSeveral;
}

template <class T>
std::vector<std::vector<typename OwnedRows<T>::Number>> OwnedRows<T>::take_changes() {
  std::vector<std::vector<Number>> by_reader(readers_);
  for (const Number number : changed_) {
    for (net::Rank reader = 0; reader < readers_; ++reader) {
      const bool subscribed = subscribers_[number * words_ + reader / 64] >> (reader % 64) & 1;
      if (subscribed && changed_by_[number] != reader) by_reader[reader].push_back(number);
    }
    changed_by_[number] = kNobody;
  }
  changed_.clear();
  return by_reader;
}

template class OwnedRows<float>;
template class OwnedRows<double>;
template class OwnedRows<std::int32_t>;
template class OwnedRows<std::int64_t>;

}  // namespace shoal::table

// What a worker reads: copies of rows with what it has added itself, as values or where they lie.
#include "shoal/table/copy.h"

namespace shoal::table {

template <class T>
template <class Take, class Row>
void Copy<T>::read_each(std::uint32_t worker, std::span<const Key> keys, const Take& take, const Row& row) {
  heard_.reads(worker);
  const Instant now = now_();
  Number number = Copies<T>::kNone;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    number = base_.find(keys[i], number + 1);
    const Clock age = base_.age(number);
    telemetry_.read(age, clocks_[worker], now - base_.told(number));
    take(i, number, age);
  }
  if (spec_.rule.steps()) return;
  added_.onto(worker, keys, row, [&, number = Copies<T>::kNone](Key key, const Part<T>& part) mutable {
    number = base_.find(key, number + 1);
    return !base_.has(number, part);
  });
}

template <class T>
Clock Copy<T>::read(std::uint32_t worker, std::span<const Key> keys, std::span<T> values) {
  const std::lock_guard lock(mutex_);
  Clock least = std::numeric_limits<Clock>::max();
  const auto row = [&](std::size_t i) { return values.subspan(i * spec_.width, spec_.width); };
  const auto take = [&](std::size_t i, Number number, Clock age) {
    least = std::min(least, age);
    set<T>(row(i), base_.row(number));
  };
  read_each(worker, keys, take, row);
  return least;
}

template <class T>
View<T> Copy<T>::view(std::uint32_t worker, std::span<const Key> keys) {
  const std::lock_guard lock(mutex_);
  View<T> view = base_.view(keys.size(), clocks_[worker]);
  const auto show = [&](std::size_t, Number number, Clock age) { base_.show(view, number, age); };
  read_each(worker, keys, show, [&](std::size_t i) { return view.copy_of(i); });
  return view;
}

template Clock Copy<float>::read(std::uint32_t, std::span<const Key>, std::span<float>);
template View<float> Copy<float>::view(std::uint32_t, std::span<const Key>);
template Clock Copy<double>::read(std::uint32_t, std::span<const Key>, std::span<double>);
template View<double> Copy<double>::view(std::uint32_t, std::span<const Key>);
template Clock Copy<std::int32_t>::read(std::uint32_t, std::span<const Key>, std::span<std::int32_t>);
template View<std::int32_t> Copy<std::int32_t>::view(std::uint32_t, std::span<const Key>);
template Clock Copy<std::int64_t>::read(std::uint32_t, std::span<const Key>, std::span<std::int64_t>);
template View<std::int64_t> Copy<std::int64_t>::view(std::uint32_t, std::span<const Key>);

}  // namespace shoal::table

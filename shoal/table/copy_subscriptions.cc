// For how long a member keeps copies of rows, and subscribes to them.
#include <algorithm>
#include <string>

#include "shoal/core/error.h"
#include "shoal/table/addressed.h"
#include "shoal/table/copy.h"

namespace shoal::table {

template <class T>
void Copy<T>::ask(std::uint32_t worker, std::span<const Key> keys, std::optional<Clock> clocks) {
  if (clocks && *clocks < 0) throw Error(Code::invalid_argument, "rows that are intended for " + std::to_string(*clocks) + " clocks", "table " + spec_.name);
  const std::lock_guard lock(mutex_);
  if (clocks) base_.intend(keys, clocks_[worker] + std::min(*clocks, kLastClock - 1 - clocks_[worker]));
  request(worker, keys);
}

template <class T>
void Copy<T>::drop(bool all) {
  Clock now = kLastClock, age = kLastClock;
  for (std::uint32_t worker = 0; worker < clocks_.size(); ++worker) {
    now = std::min(now, clocks_[worker]);
    age = std::min(age, needed(worker));
  }
  const std::vector<Key> unsubscribed = all ? base_.drop(now, age) : base_.drop_due(now);
  if (unsubscribed.empty()) return;
  telemetry_.unsubscribed += unsubscribed.size();
  auto messages = addressed<T>(placement_, Kind::unsubscribe, id_, unsubscribed, {}, 0);
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    const auto server = holders_[shard].first();
    if (!server || messages[shard].empty()) continue;  // none: whoever will answer is asked for all anew
    for (Message& message : messages[shard]) {
      message.header.sequence = base_.unsubscribes(shard);
      telemetry_.said(message);
    }
    say_to(*server, shard, std::move(messages[shard]));
  }
}

template void Copy<float>::ask(std::uint32_t, std::span<const Key>, std::optional<Clock>);
template void Copy<float>::drop(bool);
template void Copy<double>::ask(std::uint32_t, std::span<const Key>, std::optional<Clock>);
template void Copy<double>::drop(bool);
template void Copy<std::int32_t>::ask(std::uint32_t, std::span<const Key>, std::optional<Clock>);
template void Copy<std::int32_t>::drop(bool);
template void Copy<std::int64_t>::ask(std::uint32_t, std::span<const Key>, std::optional<Clock>);
template void Copy<std::int64_t>::drop(bool);

}  // namespace shoal::table

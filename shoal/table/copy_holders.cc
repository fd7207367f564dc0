// What a member makes of servers that come and go, and of a table that had begun before.
#include <algorithm>
#include <string>

#include "shoal/core/error.h"
#include "shoal/table/copy.h"

namespace shoal::table {

template <class T>
void Copy<T>::begin_at(const Start& start) {
  std::ranges::fill(clocks_, start.at.clock);
  std::ranges::fill(flushes_, start.at.met);
  met_ = start.at.clock;
  consistency_ = start.consistency;
  for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
    base_.announce(shard, start.at.clock, now_());
    base_.met(shard, start.at.met);
  }
}

template <class T>
void Copy<T>::leaves(net::Rank server) {
  if (!turns_) return hear_end_of(server);
  turns_->comes({source_of_end(server), 0}, [this, server] { hear_end_of(server); });
}

template <class T>
void Copy<T>::hear_end_of(net::Rank server) {
  {
    const std::lock_guard lock(mutex_);
    for (Holders& holders : holders_) holders.leaves(server);
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::loses(net::Rank server) {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
      if (!holders_[shard].has(server)) continue;
      change_holders(shard, [server](Holders& holders) { holders.loses(server); });
      settle(shard, Instant{});
    }
    meet(met_);
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::all_know() {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
      holders_[shard].all_know();
      settle(shard, Instant{});
    }
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::joins(std::size_t shard, net::Rank server, std::uint64_t handover, bool leads, net::Rank giver) {
  const std::lock_guard lock(mutex_);
  holders_[shard].joins(server, handover, leads, added_.sequence());
  for (const net::Rank to : {giver, server}) say_to(to, shard, alone(Message::of_kind(Kind::follow, id_, handover)));
}

template <class T>
void Copy<T>::holds(std::size_t shard, net::Rank server, std::uint64_t handover) {
  {
    const std::lock_guard lock(mutex_);
    change_holders(shard, [&](Holders& holders) { holders.holds(server, handover); });
    settle(shard, Instant{});
    meet(met_);
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::lacks(std::size_t shard, net::Rank server, std::uint64_t handover) {
  {
    const std::lock_guard lock(mutex_);
    holders_[shard].lacks(server, handover);
    settle(shard, Instant{});
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::goes(std::size_t shard, net::Rank server, std::uint64_t handover, std::uint64_t mark) {
  {
    const std::lock_guard lock(mutex_);
    going_.push_back({shard, server, mark});
    change_holders(shard, [&](Holders& holders) { holders.goes(server, handover); });
    mark_gone();
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

// Who answers in its place is first here, and will be asked what it is asked now.
template <class T>
void Copy<T>::mark_gone() {
  std::erase_if(going_, [this](const Going& going) {
    const auto first = holders_[going.shard].first();
    if (!first || first == going.server) return false;
    say_to(going.server, going.shard, alone(Message::of_kind(Kind::follow, id_, going.mark)));
    return true;
  });
}

template <class T>
void Copy<T>::parts(std::size_t shard, net::Rank server, std::uint64_t handover, std::uint64_t mark) {
  {
    const std::lock_guard lock(mutex_);
    change_holders(shard, [&](Holders& holders) { holders.parts(server, handover); });
    settle(shard, Instant{});
    meet(met_);
    say_to(server, shard, alone(Message::of_kind(Kind::follow, id_, mark)));
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
void Copy<T>::with_firsts(const std::function<void(const std::vector<net::Rank>& firsts)>& send) const {
  const std::lock_guard lock(mutex_);
  std::vector<net::Rank> firsts;
  for (const Holders& holders : holders_) firsts.push_back(holders.first().value_or(holders.last_first()));
  send(firsts);
}

template <class T>
void Copy<T>::move(std::size_t shard, net::Rank to) {
  const std::lock_guard lock(mutex_);
  Message message = Message::of_kind(Kind::move, id_);
  message.header.worker = to;
  say_to(holders_[shard].first().value_or(holders_[shard].last_first()), shard, alone(std::move(message)));
}

template <class T>
void Copy<T>::retire_all() {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t worker = 0; worker < clocks_.size(); ++worker) {
    send_open(worker, Ends::batch, kLastClock);
    for (std::size_t shard = 0; shard < holders_.size(); ++shard) {
      Message message = Message::of_kind(Kind::retire, id_);
      message.header.worker = first_worker_ + worker;
      say(shard, alone(std::move(message)));
    }
  }
}

template <class T>
std::vector<std::vector<net::Rank>> Copy<T>::holders() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<net::Rank>> whole;
  for (const Holders& holders : holders_) whole.push_back(holders.whole());
  return whole;
}

template <class T>
void Copy<T>::need(std::size_t shard) const {
  if (holders_[shard].gone()) refuse_left(shard);
}

template <class T>
void Copy<T>::refuse_left(std::size_t shard) const {
  throw Error(Code::mismatch, "rank " + std::to_string(holders_[shard].last_first()) + " has left while its rows are needed", "table " + spec_.name,
              "all members call barrier() after their last use");
}

template void Copy<float>::begin_at(const Start&);
template void Copy<double>::begin_at(const Start&);
template void Copy<std::int32_t>::begin_at(const Start&);
template void Copy<std::int64_t>::begin_at(const Start&);
template void Copy<float>::leaves(net::Rank);
template void Copy<float>::hear_end_of(net::Rank);
template void Copy<float>::loses(net::Rank);
template void Copy<float>::all_know();
template void Copy<float>::joins(std::size_t, net::Rank, std::uint64_t, bool, net::Rank);
template void Copy<float>::holds(std::size_t, net::Rank, std::uint64_t);
template void Copy<float>::lacks(std::size_t, net::Rank, std::uint64_t);
template void Copy<float>::goes(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<float>::parts(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<float>::mark_gone();
template void Copy<float>::with_firsts(const std::function<void(const std::vector<net::Rank>&)>&) const;
template void Copy<float>::move(std::size_t, net::Rank);
template void Copy<float>::retire_all();
template std::vector<std::vector<net::Rank>> Copy<float>::holders() const;
template void Copy<float>::need(std::size_t) const;
template void Copy<float>::refuse_left(std::size_t) const;
template void Copy<double>::leaves(net::Rank);
template void Copy<double>::hear_end_of(net::Rank);
template void Copy<double>::loses(net::Rank);
template void Copy<double>::all_know();
template void Copy<double>::joins(std::size_t, net::Rank, std::uint64_t, bool, net::Rank);
template void Copy<double>::holds(std::size_t, net::Rank, std::uint64_t);
template void Copy<double>::lacks(std::size_t, net::Rank, std::uint64_t);
template void Copy<double>::goes(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<double>::parts(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<double>::mark_gone();
template void Copy<double>::with_firsts(const std::function<void(const std::vector<net::Rank>&)>&) const;
template void Copy<double>::move(std::size_t, net::Rank);
template void Copy<double>::retire_all();
template std::vector<std::vector<net::Rank>> Copy<double>::holders() const;
template void Copy<double>::need(std::size_t) const;
template void Copy<double>::refuse_left(std::size_t) const;
template void Copy<std::int32_t>::leaves(net::Rank);
template void Copy<std::int32_t>::hear_end_of(net::Rank);
template void Copy<std::int32_t>::loses(net::Rank);
template void Copy<std::int32_t>::all_know();
template void Copy<std::int32_t>::joins(std::size_t, net::Rank, std::uint64_t, bool, net::Rank);
template void Copy<std::int32_t>::holds(std::size_t, net::Rank, std::uint64_t);
template void Copy<std::int32_t>::lacks(std::size_t, net::Rank, std::uint64_t);
template void Copy<std::int32_t>::goes(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<std::int32_t>::parts(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<std::int32_t>::mark_gone();
template void Copy<std::int32_t>::with_firsts(const std::function<void(const std::vector<net::Rank>&)>&) const;
template void Copy<std::int32_t>::move(std::size_t, net::Rank);
template void Copy<std::int32_t>::retire_all();
template std::vector<std::vector<net::Rank>> Copy<std::int32_t>::holders() const;
template void Copy<std::int32_t>::need(std::size_t) const;
template void Copy<std::int32_t>::refuse_left(std::size_t) const;
template void Copy<std::int64_t>::leaves(net::Rank);
template void Copy<std::int64_t>::hear_end_of(net::Rank);
template void Copy<std::int64_t>::loses(net::Rank);
template void Copy<std::int64_t>::all_know();
template void Copy<std::int64_t>::joins(std::size_t, net::Rank, std::uint64_t, bool, net::Rank);
template void Copy<std::int64_t>::holds(std::size_t, net::Rank, std::uint64_t);
template void Copy<std::int64_t>::lacks(std::size_t, net::Rank, std::uint64_t);
template void Copy<std::int64_t>::goes(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<std::int64_t>::parts(std::size_t, net::Rank, std::uint64_t, std::uint64_t);
template void Copy<std::int64_t>::mark_gone();
template void Copy<std::int64_t>::with_firsts(const std::function<void(const std::vector<net::Rank>&)>&) const;
template void Copy<std::int64_t>::move(std::size_t, net::Rank);
template void Copy<std::int64_t>::retire_all();
template std::vector<std::vector<net::Rank>> Copy<std::int64_t>::holders() const;
template void Copy<std::int64_t>::need(std::size_t) const;
template void Copy<std::int64_t>::refuse_left(std::size_t) const;

}  // namespace shoal::table

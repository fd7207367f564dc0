// Cuts of a shard's rows for snapshots, and rows as snapshots had them.
#include <memory>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/shard.h"

namespace shoal::table {

template <class T>
void Shard<T>::save(net::Rank from, Message message) {
  const Clock clock = clocked(consistency_) ? message.header.clock : kNever;  // else it is what has arrived
  if (clock != kNever && clock < clocks_.slowest()) {
    const std::string over = " of table " + spec_.name + " is over, at " + std::to_string(clocks_.slowest());
    Message late = Message::of_text(Kind::refused, id_, "clock " + std::to_string(clock) + over);
    late.header.sequence = message.header.sequence;
    return send_(from, alone(std::move(late)));
  }
  cuts_.emplace(clock, std::pair(from, std::move(message)));
  cut_through(clocks_.slowest());
}

template <class T>
void Shard<T>::cut_through(Clock clock) {
  for (auto due = cuts_.begin(); due != cuts_.end() && due->first <= clock; due = cuts_.erase(due)) {
    const auto& [by, message] = due->second;
    take_cut_(by, message, spec_, message.header.clock, rules_.at(message.header.clock), std::make_unique<RowsImage<T>>(rows_));
  }
}

template <class T>
void Shard<T>::put(net::Rank from, const Message& message) {
  settled_.clear();                                 // it is a new beginning
  first_ = {met_, clocks_.slowest()};
  readers_.forget_shown();
  if (message.header.kind == Kind::reset) rows_.reset();
  for_each_row(message, [&](Number number, std::span<const T> row) { rows_.put(number, row); });
  if (message.header.ends != Ends::nothing) readers_.announce(from, Kind::assigned);
}

template void Shard<float>::save(net::Rank, Message);
template void Shard<double>::save(net::Rank, Message);
template void Shard<std::int32_t>::save(net::Rank, Message);
template void Shard<std::int64_t>::save(net::Rank, Message);
template void Shard<float>::cut_through(Clock);
template void Shard<double>::cut_through(Clock);
template void Shard<std::int32_t>::cut_through(Clock);
template void Shard<std::int64_t>::cut_through(Clock);
template void Shard<float>::put(net::Rank, const Message&);
template void Shard<double>::put(net::Rank, const Message&);
template void Shard<std::int32_t>::put(net::Rank, const Message&);
template void Shard<std::int64_t>::put(net::Rank, const Message&);

}  // namespace shoal::table

// A shard whose members meet anew (kept.h).
#include "shoal/table/shard.h"

namespace shoal::table {

template <class T>
void Shard<T>::stop() {
  calls_->end();
  giving_.reset();
}

template <class T>
Kept Shard<T>::kept(std::size_t shard) const {
  return {id_, shard, {met_, clocks_.slowest()}, first_, consistency_};
}

template <class T>
void Shard<T>::take_over(Server& kept, const Point& at, const Consistency& consistency) {
  Shard& before = static_cast<Shard&>(kept);        // its table's rows are of the same type
  before.go_back(at);
  rows_.take_over(before.rows_);
  rows_.rises(at.clock);
  rules_ = before.rules_;
  consistency_ = consistency;
  met_ = at.met;
  clocks_.begin_at(at.clock);
  first_ = at;
}

// What workers add before a barrier and after their last clock is of the clock behind all others.
template <class T>
void Shard<T>::go_back(const Point& to) {
  for (; !settled_.empty() && Point{settled_.back().met, settled_.back().clock} >= to; settled_.pop_back()) {
    const RowMap<T>& before = settled_.back().before;
    for (Number row = 0; row < before.size(); ++row) rows_.put(static_cast<Number>(before.key(row)), before.row(row));
  }
}

template <class T>
void Shard<T>::forget_first_settled() {
  const Settled& settled = settled_.front();
  first_ = settled.clock < kLastClock ? Point{settled.met, settled.clock + 1} : Point{settled.met + 1, 0};
  settled_.pop_front();
}

template void Shard<float>::stop();
template void Shard<double>::stop();
template void Shard<std::int32_t>::stop();
template void Shard<std::int64_t>::stop();
template Kept Shard<float>::kept(std::size_t) const;
template Kept Shard<double>::kept(std::size_t) const;
template Kept Shard<std::int32_t>::kept(std::size_t) const;
template Kept Shard<std::int64_t>::kept(std::size_t) const;
template void Shard<float>::take_over(Server&, const Point&, const Consistency&);
template void Shard<double>::take_over(Server&, const Point&, const Consistency&);
template void Shard<std::int32_t>::take_over(Server&, const Point&, const Consistency&);
template void Shard<std::int64_t>::take_over(Server&, const Point&, const Consistency&);
template void Shard<float>::forget_first_settled();
template void Shard<double>::forget_first_settled();
template void Shard<std::int32_t>::forget_first_settled();
template void Shard<std::int64_t>::forget_first_settled();

}  // namespace shoal::table

// What a worker waits for before it reads and after it ticks.
#include "shoal/table/copy.h"

namespace shoal::table {

template <class T>
bool Copy<T>::may_read(std::uint32_t worker) const {
  const std::lock_guard lock(mutex_);
  return base_.slowest() >= needed(worker) && sampled_are_near(worker);
}

template <class T>
bool Copy<T>::is_near(std::uint32_t worker) const {
  const std::lock_guard lock(mutex_);
  const auto gap = widest_gap(consistency_);
  return !gap || clocks_[worker] - base_.slowest() <= *gap;
}

// Whole clocks are counted in when the slowest worker has completed them, and nobody is more than one ahead: there the gap is the bound.
template <class T>
bool Copy<T>::has_room(std::uint32_t worker) const {
  const std::lock_guard lock(mutex_);
  return !write_gate_.crowded(worker) && (whole_clocks(consistency_) || under_way_.has_room());
}

template bool Copy<float>::may_read(std::uint32_t) const;
template bool Copy<float>::is_near(std::uint32_t) const;
template bool Copy<float>::has_room(std::uint32_t) const;
template bool Copy<double>::may_read(std::uint32_t) const;
template bool Copy<double>::is_near(std::uint32_t) const;
template bool Copy<double>::has_room(std::uint32_t) const;
template bool Copy<std::int32_t>::may_read(std::uint32_t) const;
template bool Copy<std::int32_t>::is_near(std::uint32_t) const;
template bool Copy<std::int32_t>::has_room(std::uint32_t) const;
template bool Copy<std::int64_t>::may_read(std::uint32_t) const;
template bool Copy<std::int64_t>::is_near(std::uint32_t) const;
template bool Copy<std::int64_t>::has_room(std::uint32_t) const;

}  // namespace shoal::table

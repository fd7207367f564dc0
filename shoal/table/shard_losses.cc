// What a shard makes of members that are lost.
#include <algorithm>

#include "shoal/table/shard.h"

namespace shoal::table {

template <class T>
void Shard<T>::lose(net::Rank member) {
  readers_.lose(member);
  leaves(member);
  undecided_ = undecided_ || workers_.first_of(member) < workers_.size();
  const auto is_of_it = [member](const auto& asked) { return asked.second.first == member; };
  std::erase_if(waiting_, is_of_it);
  std::erase_if(cuts_, is_of_it);
  for (std::uint32_t worker = 0; worker < arriving_.size(); ++worker) {
    if (workers_.rank_of(worker) == member) arriving_[worker].clear();
  }
}

template <class T>
bool Shard<T>::cuts_workers() const {
  const bool summed = whole_clocks(consistency_) || !spec_.rule.steps();
  return survives_ && clocked(consistency_) && !leaves_at_once(consistency_) && summed;
}

template <class T>
void Shard<T>::cut(const Last& last) {
  if (calls_->is_busy()) return calls_->later([this, last] { cut(last); });
  undecided_ = false;
  std::unordered_set<Number> touched;
  if (cuts_workers()) take_back(last, touched);
  if (!whole_clocks(consistency_)) lay_anew(touched);
  clocks_.meet_at_least_at(last.reached);
  for (const auto& [worker, clock] : last.clocks) clocks_.lose(worker, clock);
  if (meet()) return;
  rise();
  readers_.tell_all();
}

template <class T>
void Shard<T>::take_back(const Last& last, std::unordered_set<Number>& touched) {
  const auto counts = [&last](std::uint64_t met, Clock clock, std::uint32_t worker) {
    const auto cut = last.clocks.find(worker);
    return cut == last.clocks.end() || clock < cut->second || met < last.met;
  };
  const auto drop = [&](std::uint64_t met, Clock clock, Batches& batches) {
    std::erase_if(batches, [&](const auto& batch) { return !counts(met, clock, batch.first); });
  };
  const auto first = std::ranges::find_if(settled_, [&](const Settled& settled) {
    return std::ranges::any_of(settled.batches, [&](const auto& batch) { return !counts(settled.met, settled.clock, batch.first); });
  });
  for (auto settled = settled_.end(); settled != first;) {
    --settled;
    RowMap<T> before = std::exchange(settled->before, RowMap<T>(rows_.full_width()));
    for (Number row = 0; row < before.size(); ++row) {
      const auto number = static_cast<Number>(before.key(row));
      rows_.put(number, before.row(row));
      touched.insert(number);
    }
  }
  for (auto settled = first; settled != settled_.end(); ++settled) {
    drop(settled->met, settled->clock, settled->batches);
    rows_.keep_in(&settled->before);
    add_up(settled->batches, settled->rule, false);
    rows_.keep_in(nullptr);
  }
  for (auto& [clock, batches] : pending_) {
    for (const auto& [worker, batch] : batches) {
      if (counts(met_, clock, worker)) continue;
      for (const Message& part : batch) {
        for_each_row(part, [&](Number number, std::span<const T>) { touched.insert(number); });
      }
    }
    drop(met_, clock, batches);
  }
}

template void Shard<float>::lose(net::Rank);
template void Shard<double>::lose(net::Rank);
template void Shard<std::int32_t>::lose(net::Rank);
template void Shard<std::int64_t>::lose(net::Rank);
template bool Shard<float>::cuts_workers() const;
template bool Shard<double>::cuts_workers() const;
template bool Shard<std::int32_t>::cuts_workers() const;
template bool Shard<std::int64_t>::cuts_workers() const;
template void Shard<float>::cut(const Last&);
template void Shard<double>::cut(const Last&);
template void Shard<std::int32_t>::cut(const Last&);
template void Shard<std::int64_t>::cut(const Last&);

}  // namespace shoal::table

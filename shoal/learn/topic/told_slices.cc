#include "shoal/learn/topic/told_slices.h"

#include <algorithm>
#include <utility>

#include "shoal/learn/topic/slice_changes.h"

namespace shoal::learn::topic {

ToldSlices::ToldSlices(const schedule::Rotation& rotation, schedule::Ring<Slice>& ring, net::Rank rank, net::Rank members, unsigned staleness,
                       Topic topics)
    : rotation_(rotation), ring_(ring), team_(ring.team(rank)), staleness_(staleness), topics_(topics), one_history_(staleness < rotation.ahead),
      tellings_(rotation.blocks()), read_(rotation.blocks()), entered_(rotation.blocks()) {
  for (std::uint32_t number = 0; number < rotation.blocks(); ++number) {
    std::vector<Telling>& tellings = tellings_[number];
    for (net::Rank member = 0; member < members; ++member) {
      if (member == rank) continue;
      const schedule::Team team = ring.team(member);
      for (std::uint32_t worker = team.first; worker < team.first + team.size; ++worker) {
        const std::uint64_t step = rotation.step_in_round(worker, number);
        if (rotation.tells(team, {worker, step})) tellings.push_back({step, worker});
      }
    }
    std::ranges::sort(tellings, {}, &Telling::step_in_round);
  }
}

// Of all rounds, one after another.
schedule::Place ToldSlices::telling(std::uint32_t number, std::uint64_t nth) const {
  const std::vector<Telling>& tellings = tellings_[number];
  const Telling& of_round = tellings[nth % tellings.size()];
  return {of_round.worker, nth / tellings.size() * rotation_.blocks() + of_round.step_in_round};
}

void ToldSlices::enter(const schedule::Place& turn, Slice& slice, Nanoseconds& waited) {
  const std::uint32_t number = rotation_.block(turn.worker, turn.step);
  const std::uint64_t end = std::max(settled_, turn.step - std::min<std::uint64_t>(turn.step, staleness_));
  for (schedule::Place next = telling(number, read_[number]); next.step < end; next = telling(number, ++read_[number])) {
    const Bytes changes = ring_.told(next, waited);
    apply(changes, topics_, slice);
    if (entered_[number]) apply(changes, topics_, *entered_[number]);
    ring_.drop(next);
  }
  if (!entered_[number]) entered_[number] = std::make_unique<Slice>(slice.compacted());
}

void ToldSlices::leave(const schedule::Place& turn, const Slice& slice) {
  if (!rotation_.tells(team_, turn)) return;
  const std::uint32_t number = rotation_.block(turn.worker, turn.step);
  const std::unique_ptr<Slice> before = std::exchange(entered_[number], nullptr);
  ring_.tell(turn, changes_between(*before, slice, one_history_));
}

void ToldSlices::forget(std::uint64_t step) {
  Nanoseconds waited{};
  for (std::uint32_t number = 0; number < rotation_.blocks(); ++number) {
    for (schedule::Place next = telling(number, read_[number]); next.step < step; next = telling(number, ++read_[number])) {
      ring_.told(next, waited);
      ring_.drop(next);
    }
  }
}

Slice ToldSlices::as_of(std::uint32_t number, const Slice& slice, std::uint64_t step) {
  Nanoseconds waited{};
  Slice copy = slice.compacted();
  std::uint64_t nth = read_[number];
  for (schedule::Place next = telling(number, nth); next.step < step; next = telling(number, ++nth)) {
    const Bytes changes = ring_.told(next, waited);
    apply(changes, topics_, copy);
  }
  return copy;
}

}  // namespace shoal::learn::topic

#include "shoal/collective/compiled.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::collective {

Compiled::Compiled(Verified program, std::uint32_t rank) : verified_(std::move(program)) {
  flatten(this->program().lanes[rank]);
  find_wakes();
  find_inputs();
}

void Compiled::flatten(const std::vector<Lane>& lanes) {
  // Two passes: an op may wait for one of a later lane.
  std::vector<std::vector<std::uint32_t>> loop_of(lanes.size());  // [lane][op within the lane] -> loop
  std::vector<std::uint32_t> first_step(lanes.size());
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    LaneRange range{static_cast<std::uint32_t>(loops_.size()), static_cast<std::uint32_t>(lanes[lane].size()), false, {}};
    first_step[lane] = static_cast<std::uint32_t>(steps_.size());
    for (const Loop& loop : lanes[lane]) {
      loop_of[lane].insert(loop_of[lane].end(), loop.ops.size(), static_cast<std::uint32_t>(loops_.size()));
      loops_.push_back({static_cast<std::uint32_t>(steps_.size()), static_cast<std::uint32_t>(loop.ops.size()), loop.times});
      for (const Op& op : loop.ops) {
        const std::uint32_t stream = op.kind == OpKind::send ? static_cast<std::uint32_t>(lane) : op.peer_lane;
        steps_.push_back({&op, stream, 0, 0});
        range.lands = range.lands || op.kind == OpKind::receive_reduce;
      }
    }
    lanes_.push_back(std::move(range));
  }
  for (Step& step : steps_) {
    step.first_wait = static_cast<std::uint32_t>(waits_.size());
    step.waits = static_cast<std::uint32_t>(step.op->after.size());
    for (const After& after : step.op->after) {
      const std::uint32_t loop = loop_of[after.lane][after.op];
      waits_.push_back({after.lane, loop, first_step[after.lane] + after.op, loops_[loop].times, after.shift});
    }
  }
}

void Compiled::find_wakes() {
  std::vector<std::set<std::uint32_t>> wakes(lanes_.size()), writers(program().slots), readers(program().slots);
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    for (std::uint32_t loop = lanes_[lane].first; loop < lanes_[lane].first + lanes_[lane].count; ++loop) {
      for (std::uint32_t step = loops_[loop].first; step < loops_[loop].first + loops_[loop].count; ++step) {
        const Op& op = *steps_[step].op;
        for (const After& after : op.after) wakes[after.lane].insert(lane);
        for (const Site& site : op.sources) {
          if (site.buffer == Buffer::scratch) readers[site.slot].insert(lane);
        }
        if (op.kind != OpKind::send && op.target.buffer == Buffer::scratch) writers[op.target.slot].insert(lane);
      }
    }
  }
  for (std::uint32_t slot = 0; slot < program().slots; ++slot) {
    for (std::uint32_t reader : readers[slot]) wakes[reader].insert(writers[slot].begin(), writers[slot].end());
  }
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) lanes_[lane].wakes.assign(wakes[lane].begin(), wakes[lane].end());
}

void Compiled::find_inputs() {
  std::set<std::uint32_t> chunks;
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    for (Place place = begin(lane); !at_end(lane, place); place = next(lane, place)) {
      const auto& sources = step(place).op->sources;
      const auto from_input = [](const Site& site) { return site.buffer == Buffer::input; };
      if (std::any_of(sources.begin(), sources.end(), from_input)) chunks.insert(chunk(place));
    }
  }
  input_chunks_.assign(chunks.begin(), chunks.end());
}

Place Compiled::settle(std::uint32_t lane, Place place) const {
  while (!at_end(lane, place) && (loops_[place.loop].times == 0 || loops_[place.loop].count == 0)) ++place.loop;
  if (!at_end(lane, place)) place.op = loops_[place.loop].first;
  return place;
}

Place Compiled::begin(std::uint32_t lane) const { return settle(lane, {lanes_[lane].first, 0, 0}); }

Place Compiled::next(std::uint32_t lane, Place place) const {
  const LoopRange& loop = loops_[place.loop];
  if (++place.op < loop.first + loop.count) return place;
  place.op = loop.first;
  if (++place.iteration < loop.times) return place;
  return settle(lane, {place.loop + 1, 0, 0});
}

}  // namespace shoal::collective

#include "shoal/sim/sized_program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "shoal/core/error.h"

namespace shoal::sim {
namespace {

using collective::Buffer;
using collective::Loop;
using collective::Op;
using collective::OpKind;
constexpr std::uint64_t kMostOps = 1 << 30;  // a simulation of hours
constexpr std::size_t kMostStrides = 8;      // programs have as many as passes

using Pair = std::pair<std::uint32_t, std::uint32_t>;

bool receives(const Op& op) { return op.kind == OpKind::receive || op.kind == OpKind::receive_reduce; }

void sort_out(std::vector<Pair>& pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

}  // namespace

SizedProgram::SizedProgram(std::shared_ptr<const collective::Program> program, std::vector<double> chunk_bytes, const Costs& costs)
    : program_(std::move(program)), chunk_bytes_(std::move(chunk_bytes)) {
  lay_out();
  find_sizes(costs);
  find_waits();
  find_streams();
  find_woken();
}

void SizedProgram::refuse(std::uint32_t lane, std::uint32_t op, const std::string& what) const {
  const LaneAt& at = lanes_[lane];
  throw Error(Code::invalid_argument, fmt::format("rank {}, lane {}, op {}: {}", at.rank, lane - first_lane_[at.rank], op, what),
              fmt::format("program {} of {} ranks", program_->name, program_->ranks));
}

void SizedProgram::lay_out() {
  const collective::Program& all = *program_;
  if (all.ranks < 1 || all.lanes.size() != all.ranks || all.chunks < 1 || all.chunks != chunk_bytes_.size()) {
    throw Error(Code::invalid_argument, fmt::format("{} ranks with lanes of {}, {} chunks with sizes of {}", all.ranks, all.lanes.size(),
                                                    all.chunks, chunk_bytes_.size()),
                fmt::format("program {}", all.name));
  }
  std::uint64_t ops = 0;
  for (std::uint32_t rank = 0; rank < all.ranks; ++rank) {
    first_lane_.push_back(lanes());
    for (const collective::Lane& lane : all.lanes[rank]) {
      for (const Loop& loop : lane) ops += std::uint64_t{loop.times} * loop.ops.size();
      if (ops > kMostOps) throw Error(Code::unsupported, fmt::format("more than {} ops when its loops are unrolled", kMostOps), fmt::format("program {}", all.name));
      const auto first = static_cast<std::uint32_t>(loops_.size());
      for (const Loop& loop : lane) {
        loops_.push_back({static_cast<std::uint32_t>(steps_.size()), static_cast<std::uint32_t>(loop.ops.size()), loop.times});
        single_ops_ = single_ops_ && loop.ops.size() == 1 && loop.times > 0;
        for (const Op& op : loop.ops) {
          const auto is_window = [](const collective::Site& site) { return site.buffer == Buffer::scratch; };
          const bool reads_windows = std::ranges::any_of(op.sources, is_window), writes_window = op.kind != OpKind::send && is_window(op.target);
          steps_.push_back({&op, 0, 0, {}, kNone, op.chunk, op.chunk_step, loop.times, op.kind, reads_windows, writes_window});
        }
      }
      lanes_.push_back({rank, first, static_cast<std::uint32_t>(loops_.size())});
    }
  }
  first_lane_.push_back(lanes());
}

void SizedProgram::find_sizes(const Costs& costs) {
  double all_bytes = 0;
  for (const double bytes : chunk_bytes_) all_bytes += bytes;
  const double mean = all_bytes / static_cast<double>(chunk_bytes_.size());
  double sent = 0;
  for (const LaneAt& lane : lanes_) {
    double by_lane = 0;
    for (std::uint32_t loop = lane.first; loop < lane.end; ++loop) {
      const auto ops = std::span(steps_).subspan(loops_[loop].first, loops_[loop].count);
      const auto sends = std::ranges::count_if(ops, [](const Step& step) { return step.op->kind == OpKind::send; });
      by_lane += mean * static_cast<double>(sends) * loops_[loop].times;
    }
    sent += by_lane;
    message_bytes_.push_back(by_lane / costs.messages_per_lane);
  }
  const std::uint32_t real = program_->slice_bytes > 0 ? program_->slice_bytes : costs.slice_bytes;
  const double slice_bytes = std::max<double>(real, sent / costs.most_flows);
  const auto cuts = [](double bytes, double piece) { return bytes > 0 ? std::max(1.0, std::ceil(bytes / piece)) : 0.0; };
  single_slices_ = true;
  double largest = 0;
  for (const double bytes : chunk_bytes_) {
    const double count = cuts(bytes, slice_bytes);
    slices_.push_back(static_cast<std::uint32_t>(count));
    messages_.push_back(count > 0 ? static_cast<std::uint32_t>(cuts(bytes / count, real)) : 0);
    single_slices_ = single_slices_ && count == 1;
    largest = std::max(largest, bytes);
  }
  const auto [fewest, most] = std::ranges::minmax(messages_);
  same_messages_ = fewest == most ? most : 0;
  const bool trains = single_slices_ && !lanes_.empty();
  const auto train = trains ? static_cast<std::uint32_t>(std::max(1.0, std::floor(std::ranges::max(message_bytes_) / largest))) : 1U;
  sending_ = costs.sending * train;
  receiving_ = costs.receiving * train;
  window_ = costs.window;
  if (single_slices_) find_runs();
}

void SizedProgram::find_runs() {
  for (const LoopAt& loop : loops_) {
    if (loop.count != 1) continue;
    Step& step = steps_[loop.first];
    step.is_run = step.op->peer_step == 0;
    if (!step.is_run || step.chunk_step == 0) continue;
    const auto by = static_cast<std::uint32_t>(std::abs(std::int64_t{step.chunk_step}));
    auto stride = std::ranges::find(strides_, by, &Stride::by);
    if (stride == strides_.end()) {
      if (strides_.size() == kMostStrides) continue;
      stride = strides_.insert(stride, {by, chunk_bytes_});
      for (std::size_t chunk = by; chunk < chunk_bytes_.size(); ++chunk) stride->bytes[chunk] += stride->bytes[chunk - by];
    }
    step.stride = static_cast<std::uint8_t>(stride - strides_.begin());
  }
}

void SizedProgram::find_waits() {
  std::vector<std::vector<Pair>> at;  // [lane of the rank][op]: loop, op in it
  for (std::uint32_t rank = 0; rank < program_->ranks; ++rank) {
    at.assign(first_lane_[rank + 1] - first_lane_[rank], {});
    for (std::uint32_t lane = first_lane_[rank]; lane < first_lane_[rank + 1]; ++lane) {
      for (std::uint32_t loop = lanes_[lane].first; loop < lanes_[lane].end; ++loop) {
        for (std::uint32_t op = 0; op < loops_[loop].count; ++op) at[lane - first_lane_[rank]].emplace_back(loop, op);
      }
    }
    for (std::uint32_t lane = first_lane_[rank]; lane < first_lane_[rank + 1]; ++lane) {
      std::uint32_t number = 0;
      for (const auto& [loop, op] : at[lane - first_lane_[rank]]) {
        Step& step = steps_[loops_[loop].first + op];
        step.first_wait = static_cast<std::uint32_t>(waits_.size());
        step.waits = static_cast<std::uint32_t>(step.op->after.size());
        for (const collective::After& after : step.op->after) {
          if (after.lane >= at.size() || after.op >= at[after.lane].size()) {
            refuse(lane, number, fmt::format("waits for lane {}, op {}, which does not exist", after.lane, after.op));
          }
          const auto& [awaited, awaited_op] = at[after.lane][after.op];
          waits_.push_back({first_lane_[rank] + after.lane, awaited, awaited_op, loops_[awaited].times, after.shift});
        }
        if (step.waits > 0) step.first = waits_[step.first_wait];
        ++number;
      }
    }
  }
}

void SizedProgram::find_streams() {
  // First all that is sent, then who takes it.
  std::vector<Pair> ends;  // sender, to
  const auto each = [this](const auto& visit) {
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
      std::uint32_t number = 0;
      for (std::uint32_t loop = lanes_[lane].first; loop < lanes_[lane].end; ++loop) {
        for (std::uint32_t op = 0; op < loops_[loop].count; ++op, ++number) visit(lane, loops_[loop], steps_[loops_[loop].first + op], number);
      }
    }
  };
  each([&](std::uint32_t lane, const LoopAt& loop, Step& step, std::uint32_t number) {
    const Op& op = *step.op;
    if (op.chunk >= program_->chunks) refuse(lane, number, fmt::format("chunk {} of {}", op.chunk, program_->chunks));
    for (const collective::Site& site : op.sources) {
      if (site.buffer == Buffer::scratch && site.slot >= program_->slots) refuse(lane, number, fmt::format("scratch window {} of {}", site.slot, program_->slots));
    }
    if (op.kind != OpKind::send && op.target.buffer == Buffer::scratch && op.target.slot >= program_->slots) {
      refuse(lane, number, fmt::format("scratch window {} of {}", op.target.slot, program_->slots));
    }
    if (op.kind != OpKind::send && !receives(op)) return;
    if (op.peer >= program_->ranks) refuse(lane, number, fmt::format("peer {} of {}", op.peer, program_->ranks));
    for (std::uint32_t i = 0; i < (op.peer_step == 0 ? std::min(loop.times, 1U) : loop.times); ++i) {
      const std::uint32_t peer = collective::peer_of(*program_, op, i);
      if (peer == lanes_[lane].rank) refuse(lane, number, "speaks to itself");
      if (op.kind == OpKind::send) ends.emplace_back(lane, peer);
    }
  });
  sort_out(ends);
  for (const auto& [sender, to] : ends) streams_.push_back({sender, kNone, to});

  const auto find = [&](std::uint32_t sender, std::uint32_t to) {
    const auto found = std::lower_bound(ends.begin(), ends.end(), Pair(sender, to));
    return found != ends.end() && *found == Pair(sender, to) ? static_cast<std::uint32_t>(found - ends.begin()) : kNone;
  };
  each([&](std::uint32_t lane, const LoopAt& loop, Step& step, std::uint32_t number) {
    const Op& op = *step.op;
    if (op.kind != OpKind::send && !receives(op)) return;
    for (std::uint32_t i = 0; i < (op.peer_step == 0 ? std::min(loop.times, 1U) : loop.times); ++i) {
      const std::uint32_t peer = collective::peer_of(*program_, op, i);
      std::uint32_t stream = kNone;
      if (op.kind == OpKind::send) {
        stream = find(lane, peer);
      } else if (op.peer_lane < first_lane_[peer + 1] - first_lane_[peer]) {
        stream = find(first_lane_[peer] + op.peer_lane, lanes_[lane].rank);
      }
      if (stream == kNone) refuse(lane, number, fmt::format("receives from rank {}, lane {}, which sends it nothing", peer, op.peer_lane));
      if (op.peer_step == 0) step.stream = stream;
      if (op.kind == OpKind::send) continue;
      std::uint32_t& receiver = streams_[stream].receiver;
      if (receiver != kNone && receiver != lane) refuse(lane, number, fmt::format("takes from rank {}, lane {}, as another lane does, too", peer, op.peer_lane));
      receiver = lane;
    }
  });
  for (const Stream& stream : streams_) {
    if (stream.receiver == kNone) refuse(stream.sender, 0, fmt::format("sends to rank {}, which never receives it", stream.to));
  }
}

void SizedProgram::find_woken() {
  std::vector<Pair> wakes;  // who goes on, who may then
  std::vector<Pair> writers, readers;  // window, lane
  for (std::uint32_t rank = 0; rank < program_->ranks; ++rank) {
    writers.clear();
    readers.clear();
    for (std::uint32_t lane = first_lane_[rank]; lane < first_lane_[rank + 1]; ++lane) {
      for (std::uint32_t loop = lanes_[lane].first; loop < lanes_[lane].end; ++loop) {
        for (const Step& step : std::span(steps_).subspan(loops_[loop].first, loops_[loop].count)) {
          for (const Wait& wait : std::span(waits_).subspan(step.first_wait, step.waits)) {
            if (wait.lane != lane) wakes.emplace_back(wait.lane, lane);
          }
          for (const collective::Site& site : step.op->sources) {
            if (site.buffer == Buffer::scratch) readers.emplace_back(site.slot, lane);
          }
          if (step.op->kind != OpKind::send && step.op->target.buffer == Buffer::scratch) writers.emplace_back(step.op->target.slot, lane);
        }
      }
    }
    sort_out(writers);
    sort_out(readers);
    for (const auto& [slot, reader] : readers) {
      for (auto writer = std::lower_bound(writers.begin(), writers.end(), Pair(slot, 0)); writer != writers.end() && writer->first == slot; ++writer) {
        if (writer->second != reader) wakes.emplace_back(reader, writer->second);
      }
    }
  }
  sort_out(wakes);
  first_woken_.assign(lanes() + 1, 0);
  for (const auto& [lane, woken] : wakes) {
    ++first_woken_[lane + 1];
    woken_.push_back(woken);
  }
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) first_woken_[lane + 1] += first_woken_[lane];
}

std::span<const std::uint32_t> SizedProgram::woken_by(std::uint32_t lane) const {
  return std::span(woken_).subspan(first_woken_[lane], first_woken_[lane + 1] - first_woken_[lane]);
}

std::string SizedProgram::place(std::uint32_t lane, const Position& at) const {
  std::uint32_t number = at.op;
  for (std::uint32_t loop = lanes_[lane].first; loop < at.loop; ++loop) number += loops_[loop].count;
  return fmt::format("rank {}, lane {}, op {}, iteration {}", lanes_[lane].rank, lane - first_lane_[lanes_[lane].rank], number, at.iteration);
}

void SizedProgram::skip_empty_loops(std::uint32_t lane, Position& at) const {
  if (single_ops_) return;
  while (at.loop < lanes_[lane].end && (loops_[at.loop].times == 0 || loops_[at.loop].count == 0)) ++at.loop;
}

Position SizedProgram::begin(std::uint32_t lane) const {
  Position at{lanes_[lane].first, 0, 0, 0};
  skip_empty_loops(lane, at);
  return at;
}

std::uint32_t SizedProgram::stream(std::uint32_t lane, const Position& at) const {
  const Step& here = step(at);
  if (here.stream != kNone) return here.stream;
  const std::uint32_t peer = collective::peer_of(*program_, *here.op, at.iteration);
  const bool sends = here.op->kind == OpKind::send;
  const Pair ends = sends ? Pair(lane, peer) : Pair(first_lane_[peer] + here.op->peer_lane, lanes_[lane].rank);
  const auto before = [](const Stream& stream, const Pair& wanted) { return Pair(stream.sender, stream.to) < wanted; };
  return static_cast<std::uint32_t>(std::lower_bound(streams_.begin(), streams_.end(), ends, before) - streams_.begin());
}

double SizedProgram::run_bytes(const Position& at, std::uint32_t count) const {
  const Step& here = step(at);
  const std::uint32_t first = chunk(at);
  if (!here.is_run) return chunk_bytes_[first] / slices(first) * count;
  const std::int64_t last = first + std::int64_t{here.chunk_step} * (count - 1);
  if (here.stride != kNoStride && last >= 0 && last < program_->chunks) {
    const auto& [by, bytes] = strides_[here.stride];
    const auto [low, high] = std::minmax({first, static_cast<std::uint32_t>(last)});
    return bytes[high] - (low >= by ? bytes[low - by] : 0);
  }
  double bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) bytes += chunk_bytes_[collective::chunk_of(*program_, op(at), at.iteration + i)];
  return bytes;
}

std::uint32_t SizedProgram::run_messages(const Position& at, std::uint32_t count) const {
  if (same_messages_ > 0) return same_messages_ * count;
  if (!step(at).is_run) return messages_[chunk(at)] * count;
  std::uint32_t messages = 0;
  for (std::uint32_t i = 0; i < count; ++i) messages += messages_[collective::chunk_of(*program_, op(at), at.iteration + i)];
  return messages;
}

void SizedProgram::next_op(std::uint32_t lane, Position& at) const {
  at.slice = 0;
  if (!single_ops_) {
    if (++at.op < loops_[at.loop].count) return;
    at.op = 0;
  }
  if (++at.iteration < steps_[single_ops_ ? at.loop : loops_[at.loop].first].times) return;
  at.iteration = 0;
  ++at.loop;
  skip_empty_loops(lane, at);
}

void SizedProgram::advance(std::uint32_t lane, Position& at, std::uint32_t count) const {
  if (step(at).is_run) {
    at.iteration += count - (count > 0 ? 1 : 0);
    return next_op(lane, at);
  }
  at.slice += count;
  if (at.slice >= slices(chunk(at))) next_op(lane, at);
}

}  // namespace shoal::sim

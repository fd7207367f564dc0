#include "shoal/collective/operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "shoal/core/event.h"
#include "shoal/core/reduce.h"

namespace shoal::collective {
namespace {

constexpr std::size_t kWindowBytes = 32 << 20;            // of one run's windows, where kLeastDepth needs no more
constexpr std::size_t kLocalBytes = 1 << 20;              // copied or scaled before the loop serves others
constexpr std::size_t kMostWaits = 4;                     // lines of one operation in describe()

}  // namespace

Operation::Operation(std::shared_ptr<Group> group, std::shared_ptr<const Compiled> program, const Layout& layout,
                     Buffers buffers, const Run& run, net::Done done)
    : group_(std::move(group)),
      program_(std::move(program)),
      layout_(layout),
      buffers_(buffers),
      run_(run),
      done_(std::move(done)),
      element_(size_of(run.type)),
      divisor_(run.scaling.divisor * (run.op == ReduceOp::average ? static_cast<double>(group_->members.size()) : 1.0)),
      input_(buffers.input),
      lanes_(program_->lanes()),
      windows_(program_->program().slots),
      began_(group_->transport.now()) {
  ready_.reserve(2 * lanes_.size());
}

// --- memory

void Operation::allocate() {
  const std::uint32_t tuned = program_->program().slice_bytes;
  std::size_t limit = tuned > 0 ? tuned : run_.slice_bytes;
  if (run_.priority.cls == net::Class::urgent) limit = std::min(limit, net::kUrgentLimit);
  const std::uint64_t per_line = kCacheLine / element_;
  slice_ = std::max<std::uint64_t>(limit / element_, 1);
  if (slice_ > per_line) slice_ -= slice_ % per_line;
  const std::uint64_t largest = *std::max_element(layout_.count.begin(), layout_.count.end());
  const std::uint64_t whole = std::max<std::uint64_t>(std::min(slice_, largest), 1);
  slice_bytes_ = (whole * element_ + kCacheLine - 1) / kCacheLine * kCacheLine;

  std::size_t windows = windows_.size();
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) windows += program_->lane(lane).lands;
  const std::size_t slices = kWindowBytes / std::max<std::size_t>(windows * slice_bytes_, 1);
  depth_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(slices, kLeastDepth, kDepth));
  scratch_ = group_->pool.take(windows * depth_ * slice_bytes_);
  std::byte* at = scratch_.bytes.get();
  for (Window& window : windows_) window.bytes = std::exchange(at, at + depth_ * slice_bytes_);
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!program_->lane(lane).lands) continue;
    for (std::uint32_t k = 0; k < depth_; ++k) lanes_[lane].landings[k].bytes = std::exchange(at, at + slice_bytes_);
  }

  if (run_.scaling.prescale == 1) return;
  std::uint64_t extent = 0;
  for (std::uint32_t chunk : program_->input_chunks()) extent = std::max(extent, layout_.input[chunk] + layout_.count[chunk]);
  scaled_ = group_->pool.take(extent * element_);
  input_ = scaled_.bytes.get();
}

void Operation::scale_input() {
  if (failure_) return;
  const auto& chunks = program_->input_chunks();
  std::size_t budget = kLocalBytes;
  while (scaled_chunks_ < chunks.size()) {
    const std::uint32_t chunk = chunks[scaled_chunks_];
    const std::uint64_t first = scaled_slices_ * slice_, count = layout_.count[chunk];
    if (first >= count) {
      ++scaled_chunks_;
      scaled_slices_ = 0;
      continue;
    }
    if (budget == 0) return later(&Operation::scale_input);
    const std::uint64_t part = std::min(slice_, count - first);
    const std::size_t offset = (layout_.input[chunk] + first) * element_;
    scale(run_.type, scaled_.bytes.get() + offset, buffers_.input + offset, run_.scaling.prescale, part);
    ++scaled_slices_;
    budget -= std::min(budget, part * element_);
  }
  start_lanes();
}

std::uint64_t Operation::elements(const Cursor& at) const {
  return std::min(slice_, layout_.count[at.chunk] - at.slice * slice_);
}

const std::byte* Operation::source(const Cursor& at, const Site& site) {
  switch (site.buffer) {
    case Buffer::input: return input_ + (layout_.input[at.chunk] + at.slice * slice_) * element_;
    case Buffer::output: return buffers_.output + (layout_.output[at.chunk] + at.slice * slice_) * element_;
    case Buffer::scratch: break;
  }
  Window& window = windows_[site.slot];
  return window.bytes + (window.taken++ % depth_) * slice_bytes_;
}

std::byte* Operation::target(const Cursor& at, const Site& site) {
  if (site.buffer == Buffer::output) {
    return buffers_.output + (layout_.output[at.chunk] + at.slice * slice_) * element_;
  }
  Window& window = windows_[site.slot];
  return window.bytes + (window.written++ % depth_) * slice_bytes_;
}

// --- progress

void Operation::begin() {
  try {
    allocate();
  } catch (const Error& error) {
    return end(std::make_shared<const Error>(error.code(), error.fact(), run_.label));
  }
  incomplete_ = static_cast<std::uint32_t>(lanes_.size());
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    LaneState& state = lanes_[lane];
    enter(lane, state.next, program_->begin(lane));
    state.oldest = state.next;
    if (complete(lane)) --incomplete_;
  }
  run_.scaling.prescale == 1 ? start_lanes() : scale_input();
  // Never from inside start(): the caller does not expect its handler yet.
  if (outstanding_ == 0) later(&Operation::run);
}

void Operation::start_lanes() {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) wake(lane);
  run();
}

void Operation::wake(std::uint32_t lane) {
  if (std::exchange(lanes_[lane].queued, true)) return;
  ready_.push_back(lane);
}

void Operation::run() {
  std::size_t budget = kLocalBytes;
  while (ready_head_ < ready_.size()) {
    const std::uint32_t lane = ready_[ready_head_++];
    lanes_[lane].queued = false;
    const bool local = lanes_[lane].in_flight == 0;
    if (!step(lane)) continue;
    wake(lane);  // behind the others: lanes take turns slice by slice
    if (local && lanes_[lane].in_flight == 0) budget -= std::min(budget, slice_bytes_);
    if (budget > 0) continue;
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(ready_head_));
    ready_head_ = 0;
    return later(&Operation::run);
  }
  ready_.clear();
  ready_head_ = 0;
}

bool Operation::step(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (program_->at_end(lane, state.next.place)) return false;
  if (!may_begin(state) || !waits_over(state.next)) return false;
  if (state.next.slices > 0) {
    begin_slice(lane);
    ++state.next.slice;
  }
  if (state.next.slice == state.next.slices) enter(lane, state.next, program_->next(lane, state.next.place));
  pass_done(lane);
  return true;
}

// Whether the lane has room for its next slice: in flight, and in the window it writes.
bool Operation::may_begin(const LaneState& lane) const {
  const Op& op = *program_->step(lane.next.place).op;
  if (lane.in_flight > 0) {
    const Op& flying = *program_->step(lane.oldest.place).op;
    const bool same_stream = flying.kind == op.kind && lane.oldest.peer == lane.next.peer;
    if (!same_stream || lane.in_flight >= std::min(op.kind == OpKind::send ? kSending : kReceiving, depth_)) return false;
  }
  if (op.kind == OpKind::send || op.target.buffer != Buffer::scratch) return true;
  const Window& window = windows_[op.target.slot];
  return window.written - window.read < depth_;
}

// Whether what `at` names in its op's `after` is done: the same slice where both speak of one chunk, else the whole op.
bool Operation::waits_over(const Cursor& at) const {
  for (const Compiled::Wait& wait : program_->waits(program_->step(at.place))) {
    const std::int64_t iteration = std::int64_t{at.place.iteration} + wait.shift;
    if (iteration < 0 || iteration >= wait.times) continue;
    const Place awaited{wait.loop, static_cast<std::uint32_t>(iteration), wait.step};
    const Cursor& oldest = lanes_[wait.lane].oldest;
    if (oldest.place > awaited) continue;
    if (oldest.place < awaited) return false;
    const bool same_chunk = program_->chunk(wait, awaited.iteration) == at.chunk;
    if (!same_chunk || oldest.slice <= at.slice) return false;
  }
  return true;
}

void Operation::begin_slice(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const Cursor& at = state.next;
  const Compiled::Step& step = program_->step(at.place);
  const Op& op = *step.op;
  if (op.kind == OpKind::fold || op.kind == OpKind::copy) return begin_local(lane, op);
  ++state.in_flight;
  const std::size_t bytes = elements(at) * element_;
  const net::Tag tag{run_.operation, step.stream};
  const net::Rank peer = group_->members[at.peer];
  if (op.kind == OpKind::send) {
    group_->transport.send(peer, tag, run_.priority, {source(at, op.sources[0]), bytes}, handler(lane));
  } else if (op.kind == OpKind::receive) {
    group_->transport.receive(peer, tag, run_.priority, {target(at, op.target), bytes}, handler(lane));
  } else {
    // Both places are taken now, so that windows are used in the order in which slices begin.
    Landing& landing = state.landings[state.landed++ % depth_];
    landing.source = source(at, op.sources[0]);
    landing.target = target(at, op.target);
    group_->transport.receive(peer, tag, run_.priority, {landing.bytes, bytes}, handler(lane));
  }
}

void Operation::begin_local(std::uint32_t lane, const Op& op) {
  const Cursor& at = lanes_[lane].next;
  const std::uint64_t count = elements(at);
  addends_.clear();
  for (const Site& site : op.sources) addends_.push_back(source(at, site));
  std::byte* into = target(at, op.target);
  if (op.kind == OpKind::fold) {
    fold(run_.type, run_.op, into, addends_, count);
  } else if (into != addends_[0]) {
    std::memcpy(into, addends_[0], count * element_);
  }
  finish_addition(at, op, into);
  slice_done(lane);
}

// The lane's oldest slice is added where it landed, still in cache.
void Operation::add_landed(LaneState& state, const Op& op) {
  const Landing& landing = state.landings[state.added++ % depth_];
  const void* incoming = landing.bytes;
  const std::uint64_t count = elements(state.oldest);
  if (landing.source == landing.target) {
    reduce(run_.type, run_.op, landing.target, incoming, count);
  } else {
    const void* both[] = {landing.source, incoming};
    fold(run_.type, run_.op, landing.target, both, count);
  }
  finish_addition(state.oldest, op, landing.target);
}

void Operation::finish_addition(const Cursor& at, const Op& op, std::byte* into) const {
  if (op.completes && divisor_ != 1) divide(run_.type, into, divisor_, elements(at));
}

// The lane's oldest slice is in place: frees what it read and lets others look again.
void Operation::slice_done(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const Op& op = *program_->step(state.oldest.place).op;
  for (const Site& site : op.sources) {
    if (site.buffer == Buffer::scratch) ++windows_[site.slot].read;
  }
  ++state.oldest.slice;
  pass_done(lane);
  for (std::uint32_t other : program_->lane(lane).wakes) wake(other);
}

void Operation::enter(std::uint32_t lane, Cursor& cursor, Place place) const {
  cursor = Cursor{place};
  if (program_->at_end(lane, place)) return;
  cursor.chunk = program_->chunk(place);
  const OpKind kind = program_->step(place).op->kind;
  if (kind != OpKind::fold && kind != OpKind::copy) cursor.peer = program_->peer(place);
  cursor.slices = slices(cursor.chunk);
}

void Operation::pass_done(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  bool passed = false;
  while (!complete(lane) && state.oldest.slice == state.oldest.slices) {
    // An op without slices is done when the lane has gone past it: it, too, has waited for what it names.
    if (state.oldest.slices == 0 && state.next.place <= state.oldest.place) break;
    enter(lane, state.oldest, program_->next(lane, state.oldest.place));
    passed = true;
    if (complete(lane)) --incomplete_;
  }
  if (!passed) return;
  for (std::uint32_t other : program_->lane(lane).wakes) wake(other);
}

net::Done Operation::handler(std::uint32_t lane) {
  ++outstanding_;
  return [self = shared_from_this(), lane](const net::Failure& why) { self->moved(lane, why); };
}

// The transport has moved the lane's oldest slice, or never will.
void Operation::moved(std::uint32_t lane, const net::Failure& why) {
  --outstanding_;
  if (why) end(why);
  if (!failure_) {
    LaneState& state = lanes_[lane];
    const Op& op = *program_->step(state.oldest.place).op;
    if (op.kind == OpKind::receive_reduce) add_landed(state, op);
    --state.in_flight;
    slice_done(lane);
    wake(lane);
    run();
  }
  settle();
}

void Operation::later(void (Operation::*what)()) {
  ++outstanding_;
  group_->transport.post([self = shared_from_this(), what] {
    --self->outstanding_;
    if (!self->failure_) (*self.*what)();
    self->settle();
  });
}

// --- the end

void Operation::end(const net::Failure& why) {
  if (finished_ || failure_) return;
  failure_ = why;
  group_->transport.close(run_.operation, why);
  if (outstanding_ == 0) later(&Operation::run);  // settles on the loop, outside of whoever calls
}

void Operation::settle() {
  if (finished_ || outstanding_ > 0) return;
  if (!failure_ && incomplete_ > 0) {
    // verify() proves that this does not happen; if it is wrong, an error is better than silence.
    return end(std::make_shared<const Error>(Code::internal, "the program stands still", run_.label));
  }
  finished_ = true;
  if (!failure_) group_->transport.close(run_.operation, nullptr);
  std::erase_if(group_->open, [this](const auto& operation) { return operation.get() == this; });
  group_->pool.give(std::move(scratch_));
  group_->pool.give(std::move(scaled_));
  Events& events = Events::local();
  if (events.enabled()) {
    double elements = 0;
    for (std::uint64_t count : layout_.count) elements += static_cast<double>(count);
    const std::string& title = run_.label.empty() ? program_->program().name : run_.label;
    events.record({EventKind::collective, began_, group_->transport.now(), static_cast<std::int64_t>(run_.priority.iteration),
                   -1, elements * static_cast<double>(element_), events.intern(title)});
  }
  std::exchange(done_, nullptr)(failure_);
}

void Operation::describe(std::vector<std::string>& lines) const {
  const std::string title = run_.label.empty() ? program_->program().name : run_.label;
  std::size_t told = 0;
  for (const bool receiving : {true, false}) {  // who waits to send mostly waits for somebody who does not receive
    for (const LaneState& lane : lanes_) {
      if (lane.in_flight == 0 || told == kMostWaits) continue;
      const Cursor& at = lane.oldest;
      if ((program_->step(at.place).op->kind != OpKind::send) != receiving) continue;
      lines.push_back(fmt::format("{}: {} of {} slices {} rank {}", title, at.slice, at.slices, receiving ? "from" : "to",
                                  group_->members[at.peer]));
      ++told;
    }
    if (told > 0) return;
  }
}

}  // namespace shoal::collective

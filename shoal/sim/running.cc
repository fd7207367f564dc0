#include "shoal/sim/running.h"

#include <algorithm>
#include <tuple>

#include "shoal/sim/simulation.h"

namespace shoal::sim {

using collective::Buffer;
using collective::Op;
using collective::OpKind;

Running::Running(Simulation& simulation, std::uint32_t attempt, const Job& what, std::shared_ptr<const SizedProgram> program)
    : simulation_(simulation),
      attempt_(attempt),
      what_(what),
      program_(std::move(program)),
      slots_(program_->program().slots),
      lanes_(program_->lanes()),
      windows_(std::size_t{program_->program().ranks} * slots_),
      streams_(program_->streams().size()),
      ranks_(program_->program().ranks),
      incomplete_ranks_(program_->program().ranks) {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const Position begin = program_->begin(lane);
    lanes_[lane] = {begin, begin, program_->woken_by(lane), program_->rank_of(lane), program_->end(lane)};
    ranks_[lanes_[lane].rank].incomplete += !lanes_[lane].at_end(begin);
  }
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) streams_[stream].ends = program_->streams()[stream];
}

void Running::start(std::uint32_t rank) {
  ranks_[rank].started = true;
  if (ranks_[rank].incomplete == 0) {
    --incomplete_ranks_;
    return simulation_.done(attempt_, rank);
  }
  for (std::uint32_t lane = program_->first_lane(rank); lane < program_->first_lane(rank + 1); ++lane) wake(lane);
}

void Running::wake(std::uint32_t lane) {
  if (lanes_[lane].queued || !ranks_[lanes_[lane].rank].started) return;
  lanes_[lane].queued = true;
  woken_.push(lane);
}

void Running::go() {
  while (!woken_.empty()) {
    const std::uint32_t lane = woken_.pop();
    lanes_[lane].queued = false;
    if (step(lane)) wake(lane);  // behind the others: lanes take turns
  }
}

void Running::fetch(std::uint32_t stream, bool sent, std::uint32_t step) const {
  if (step == 0) {
    __builtin_prefetch(&streams_[stream]);
    return __builtin_prefetch(reinterpret_cast<const char*>(&streams_[stream]) + sizeof(StreamState) / 2);
  }
  const LaneState& lane = lanes_[sent ? streams_[stream].ends.sender : streams_[stream].ends.receiver];
  if (step == 1) return __builtin_prefetch(&lane);
  if (step == 2) program_->fetch(lane.next);
  for (const std::uint32_t other : lane.wakes) step == 2 ? __builtin_prefetch(&lanes_[other]) : program_->fetch(lanes_[other].next);
}

bool Running::step(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.at_end(state.next)) return false;
  const OpKind kind = program_->kind(state.next);
  const auto oldest = [this](std::uint32_t other) -> const Position& { return lanes_[other].oldest; };
  std::uint32_t slices = program_->run_length(state.next);
  if (slices == 0) {  // an empty op waits like any other
    if (program_->ready(state.next, 1, oldest) == 0) return false;
    program_->advance(lane, state.next, 0);
    if (pass_empty(lane)) progressed(lane);
    return true;
  }
  const bool local = kind == OpKind::fold || kind == OpKind::copy;
  const std::uint32_t stream = local ? SizedProgram::kNone : program_->stream(lane, state.next);
  if (state.in_flight > 0) {
    if (local || state.in_flight >= program_->in_flight(kind)) return false;
    if (program_->kind(state.oldest) != kind || program_->stream(lane, state.oldest) != stream) return false;
  }
  slices = std::min(slices, program_->in_flight(kind) - state.in_flight);
  Window* const target = program_->writes_window(state.next) ? &window(lane, program_->op(state.next).target.slot) : nullptr;
  if (target != nullptr) slices = std::min(slices, program_->window() - (target->written - target->read));
  slices = program_->ready(state.next, slices, oldest);
  if (slices == 0) return false;

  const Train train{slices, program_->run_messages(state.next, slices), program_->run_bytes(state.next, slices)};
  if (target != nullptr) target->written += slices;
  const Position at = state.next;
  state.in_flight += slices;
  program_->advance(lane, state.next, slices);
  if (local) {
    begin_local(lane, program_->op(at), train);
  } else if (kind == OpKind::send) {
    begin_send(lane, stream, train);
  } else {
    streams_[stream].posted += slices;
    offer(stream);
  }
  return true;
}

void Running::occupy(topo::Node host, double seconds, Token::Kind kind, std::uint32_t index) {
  simulation_.occupy(host, seconds, {kind, attempt_, index});
}

void Running::begin_send(std::uint32_t lane, std::uint32_t stream, const Train& train) {
  const double seconds = train.messages * simulation_.costs().message_seconds;
  if (seconds > 0) {
    streams_[stream].preparing.push(train);
    return occupy(host(lane), seconds, Token::Kind::prepared, stream);
  }
  streams_[stream].ready.push(train);
  offer(stream);
}

void Running::begin_local(std::uint32_t lane, const Op& op, const Train& train) {
  // A fold of k sources adds k - 1 times; a copy reads and writes once, as an addition does.
  const double passes = op.kind == OpKind::copy ? 1 : static_cast<double>(op.sources.size()) - 1;
  const double rate = simulation_.costs().add_rate, seconds = rate > 0 ? passes * train.bytes / rate : 0;
  seconds > 0 ? occupy(host(lane), seconds, Token::Kind::local, lane) : local_done(lane);
}

void Running::local_done(std::uint32_t lane) { done(lane, lanes_[lane].in_flight); }

void Running::prepared(std::uint32_t stream) {
  StreamState& state = streams_[stream];
  state.ready.push(state.preparing.pop());
  offer(stream);
}

void Running::offer(std::uint32_t stream) {
  StreamState& state = streams_[stream];
  if (state.waiting || state.ready.empty() || state.posted == 0) return;
  state.waiting = true;
  if (state.channel == SizedProgram::kNone) {
    const SizedProgram::Stream& ends = state.ends;
    const bool by_switches = passes_switches(program_->program(), program_->chunk(program_->begin(ends.sender)));
    state.channel = simulation_.channel(host(ends.sender), what_.hosts[ends.to], what_.priority, by_switches);
  }
  simulation_.offer(state.channel, attempt_, stream);
}

double Running::take(std::uint32_t stream) {
  StreamState& state = streams_[stream];
  Train& train = state.flying = {};
  const double most = program_->message_bytes(state.ends.sender);
  while (!state.ready.empty() && state.posted > 0) {
    Train& first = state.ready.front();
    const double each = first.bytes / first.slices;
    const double room = std::max(most - train.bytes, 0.0) / each;
    std::uint32_t slices = std::min(first.slices, state.posted);
    if (room < slices) slices = static_cast<std::uint32_t>(room);
    if (slices == 0) {
      if (train.slices > 0) break;
      slices = 1;
    }
    const std::uint32_t messages = first.messages * slices / first.slices;
    const Train part{slices, slices == first.slices ? first.messages : messages, slices == first.slices ? first.bytes : each * slices};
    train = {train.slices + part.slices, train.messages + part.messages, train.bytes + part.bytes};
    first = {first.slices - part.slices, first.messages - part.messages, first.bytes - part.bytes};
    state.posted -= part.slices;
    if (first.slices == 0) state.ready.pop();
  }
  return train.bytes;
}

void Running::flown(std::uint32_t stream, double began) {
  StreamState& state = streams_[stream];
  const Train train = state.flying;
  const SizedProgram::Stream ends = state.ends;
  const double now = simulation_.now(), latency = simulation_.latency(state.channel);
  simulation_.sent(attempt_, {.from = host(ends.sender), .to = what_.hosts[ends.to], .begin = began, .end = now, .bytes = train.bytes});
  state.waiting = false;
  if (latency > 0) {
    state.in_transit.push(train);
    simulation_.timer(now + latency, {Token::Kind::arrived, attempt_, stream});
  } else {
    receive(stream, train);
  }
  done(ends.sender, train.slices);
  offer(stream);
}

void Running::arrived(std::uint32_t stream) { receive(stream, streams_[stream].in_transit.pop()); }

void Running::receive(std::uint32_t stream, const Train& train) {
  const std::uint32_t lane = streams_[stream].ends.receiver;
  const Costs& costs = simulation_.costs();
  const bool adds = costs.add_rate > 0 && program_->kind(lanes_[lane].oldest) == OpKind::receive_reduce;
  const double adding = adds ? train.bytes / costs.add_rate : 0;
  const double seconds = train.messages * costs.message_seconds + adding;
  if (seconds <= 0) return done(lane, train.slices);
  streams_[stream].being_taken.push(train);
  occupy(host(lane), seconds, Token::Kind::taken, stream);
}

void Running::taken(std::uint32_t stream) { done(streams_[stream].ends.receiver, streams_[stream].being_taken.pop().slices); }

// The lane's oldest slices are in place: frees what they read and lets others look again.
void Running::done(std::uint32_t lane, std::uint32_t slices) {
  LaneState& state = lanes_[lane];
  state.in_flight -= slices;
  while (slices > 0) {
    const std::uint32_t part = std::min(slices, program_->run_length(state.oldest));
    if (program_->reads_windows(state.oldest)) {
      for (const collective::Site& site : program_->op(state.oldest).sources) {
        if (site.buffer == Buffer::scratch) window(lane, site.slot).read += part;
      }
    }
    program_->advance(lane, state.oldest, part);
    slices -= part;
    if (slices > 0) pass_empty(lane);
  }
  pass_empty(lane);
  progressed(lane);
}

// `oldest` over empty ops that the lane has gone past.
bool Running::pass_empty(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const auto place = [](const Position& at) { return std::tuple(at.loop, at.iteration, at.op); };
  bool passed = false;
  while (!state.at_end(state.oldest) && place(state.oldest) < place(state.next) && program_->run_length(state.oldest) == 0) {
    program_->advance(lane, state.oldest, 0);
    passed = true;
  }
  return passed;
}

void Running::progressed(std::uint32_t lane) {
  const LaneState& state = lanes_[lane];
  wake(lane);
  for (const std::uint32_t other : state.wakes) wake(other);
  if (!state.at_end(state.oldest)) return;
  RankState& rank = ranks_[state.rank];
  if (--rank.incomplete > 0) return;
  --incomplete_ranks_;
  simulation_.done(attempt_, state.rank);
}

std::string Running::standstill() const {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (ranks_[lanes_[lane].rank].started && !lanes_[lane].at_end(lanes_[lane].oldest)) return program_->place(lane, lanes_[lane].oldest);
  }
  return "no rank";
}

}  // namespace shoal::sim

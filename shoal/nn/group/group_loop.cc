#include "shoal/nn/group/group_loop.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/core/text.h"
#include "shoal/nn/group/failure.h"

namespace shoal::nn {
namespace {

using collective::Collective;

enum Channel : std::uint16_t { kCollectives = 1, kNotes = 2, kMessages = 3 };
constexpr std::size_t kRecent = 256;
constexpr std::size_t kAheadLimit = 65536;  // collectives that others have entered and this member has not
constexpr Nanoseconds kPatienceInSilence = std::chrono::seconds(1);  // then members tell what they wait in

Collective kind_of(Operation operation) {
  switch (operation) {
    case Operation::broadcast: return Collective::broadcast;
    case Operation::reduce: return Collective::reduce;
    case Operation::all_gather: return Collective::all_gather;
    case Operation::gather: return Collective::gather;
    case Operation::scatter: return Collective::scatter;
    case Operation::reduce_scatter: return Collective::reduce_scatter;
    case Operation::all_to_all: return Collective::all_to_all;
    case Operation::all_reduce:
    case Operation::barrier: break;
  }
  return Collective::all_reduce;
}

std::string operation_name(std::uint64_t sequence, const Descriptor& descriptor) {
  return "operation " + std::to_string(sequence) + ", " + descriptor.show();
}

enum Entered : std::uint32_t { kAnnounces, kAnswers };
Note entered(std::uint64_t sequence, const Descriptor& descriptor, Entered why) {
  Note note{NoteKind::entered, why, sequence, 0};
  std::copy(descriptor.words.begin(), descriptor.words.end(), note.detail.begin());
  return note;
}

// The streams of one collective. What the member believes it to be is part of the name, so that members in different
// ones never take each other's bytes for their own: they wait, announce, and learn that they differ.
std::uint64_t streams_of(std::uint64_t sequence, const Descriptor& descriptor) {
  return net::operation_in(kCollectives, std::uint64_t{descriptor.digest()} << 32 | (sequence & 0xffff'ffffu));
}

collective::LinkModel without_network(collective::LinkModel link) {
  link.network = nullptr;
  return link;
}

}  // namespace

Group::Loop::Loop(net::Transport& transport, Settings settings)
    : transport_(transport), settings_(settings), without_trees_(without_network(settings.link)) {
  std::vector<net::Rank> everybody(transport.size());
  std::iota(everybody.begin(), everybody.end(), 0u);
  runner_ = std::make_unique<collective::Runner>(transport, everybody);
  notes_ = std::make_unique<Notes>(transport, net::operation_in(kNotes, 0));
  points_ = std::make_unique<Points>(transport, *notes_, kMessages);
  barrier_ = std::make_unique<MonitoredBarrier>(transport, *notes_);
}

void Group::Loop::listen() {
  notes_->on(NoteKind::entered, [this](net::Rank from, const Note& note) { heard(from, note); });
  notes_->on(NoteKind::differ, [this](net::Rank, const Note& verdict) { differ(verdict); });
  notes_->listen();
  transport_.on_failure([weak = weak_from_this()](const net::Failure& why) {
    if (const auto self = weak.lock()) self->end(why);
  });
}

// --- a collective, in the order of its life

void Group::Loop::start(std::uint64_t sequence, Collect what, Nanoseconds patience, net::Done done) {
  if (ended_) return done(ended_);
  const Descriptor descriptor = Descriptor::of(what);
  started_ = std::max(started_, sequence);
  recent_.emplace(sequence, descriptor);
  if (recent_.size() > kRecent) recent_.erase(recent_.begin());

  Open& open = open_[sequence];
  open.what = std::move(what);
  open.descriptor = descriptor;
  open.patience = patience;
  open.done = std::move(done);
  open.entered.resize(transport_.size());
  open.entered[transport_.rank()] = true;
  const Instant now = transport_.now();
  open.deadline = transport_.at(now + patience, [this, sequence] { timed_out(sequence); });
  if (!settings_.check) {
    open.announcement = transport_.at(now + std::min(kPatienceInSilence, patience / 2), [this, sequence] { announce(sequence); });
  } else {
    announce(sequence);
  }

  const auto others = ahead_.extract(sequence);
  if (!others.empty()) {
    for (const auto& [from, theirs] : others.mapped()) {
      compare(from, sequence, theirs, descriptor);
      if (ended_) return;  // `open` is gone
      if (theirs == descriptor) open.entered[from] = true;
    }
  }
  if (settings_.check) {
    run_if_checked(sequence);
  } else {
    run(sequence);
  }
}

void Group::Loop::run(std::uint64_t sequence) {
  Open& open = open_.at(sequence);
  if (open.running) return;
  Collect& what = open.what;
  if (what.operation == Operation::barrier && open_.begin()->first < sequence) return;  // finish() of the last before it
  if (what.total == 0 && what.comparable) return finish(sequence, nullptr);
  const collective::LinkModel& link = what.layout ? without_trees_ : settings_.link;
  const Collective kind = kind_of(what.operation);
  const std::uint64_t bytes = what.total * size_of(what.type);
  try {
    const std::string name = collective::choose(kind, transport_.size(), static_cast<double>(bytes), link, false, what.root);
    const auto& verified = program(kind, name, what.root);
    if (what.buffers.input == what.buffers.output && what.buffers.input && !verified.in_place()) {
      open.copy.assign(what.buffers.input, what.buffers.input + bytes);
      what.buffers.input = open.copy.data();
    }
    collective::Run settings;
    settings.type = what.type;
    settings.op = what.op;
    settings.scaling = what.scaling;
    const bool small = what.comparable && bytes <= net::kUrgentLimit;
    settings.slice_bytes = collective::slice_bytes(kind, name, transport_.size(), static_cast<double>(bytes), link);
    if (small) settings.slice_bytes = std::min<std::uint32_t>(settings.slice_bytes, net::kUrgentLimit);
    settings.priority = {small ? net::Class::urgent : net::Class::bulk, 0, sequence};
    settings.operation = streams_of(sequence, open.descriptor);
    settings.label = operation_name(sequence, open.descriptor);
    open.running = true;
    transport_.doing(settings.label);
    const auto layout = what.layout ? *what.layout
                                    : collective::Layout::even(verified.program(), transport_.rank(), what.total);
    runner_->start(verified, layout, what.buffers, settings,
                   [self = shared_from_this(), sequence](const net::Failure& failure) { self->finish(sequence, failure); });
  } catch (const Error& error) {
    finish(sequence, failure_of(error));
  }
}

void Group::Loop::timed_out(std::uint64_t sequence) {
  Open& open = open_.at(sequence);
  open.deadline = 0;
  std::string why = "not done within " + show_seconds(Seconds(open.patience).count());
  const std::string missing = missing_ranks(open.entered);
  if (!missing.empty()) {
    why += ": " + missing + " not entered it";
  } else if (const std::string waits = waiting(); !waits.empty()) {
    why += "; waiting for " + waits;
  }
  const auto failure = failure_of(Error(Code::timeout, why, operation_name(sequence, open.descriptor)));
  if (open.running) {
    runner_->cancel(streams_of(sequence, open.descriptor), failure);
  } else {
    finish(sequence, failure);
  }
}

void Group::Loop::finish(std::uint64_t sequence, const net::Failure& failure) {
  auto node = open_.extract(sequence);
  if (node.empty()) return;
  stop_timers(node.mapped());
  node.mapped().done(failure);
  if (ended_ || open_.empty()) return;
  const auto& [first, open] = *open_.begin();
  if (open.what.operation == Operation::barrier) settings_.check ? run_if_checked(first) : run(first);
}

void Group::Loop::stop_timers(Open& open) {
  for (std::uint64_t* const timer : {&open.deadline, &open.announcement}) {
    if (*timer != 0) transport_.cancel(std::exchange(*timer, 0));
  }
}

const collective::Verified& Group::Loop::program(Collective kind, const std::string& name, std::uint32_t root) {
  const auto key = std::tuple(kind, name, root);
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    found = programs_.emplace(key, collective::program_named(kind, name, transport_.size(), root, settings_.link.network.get())).first;
  }
  return found->second;
}

// --- what members believe

void Group::Loop::announce(std::uint64_t sequence) {
  open_.at(sequence).announcement = 0;
  notes_->send_all(entered(sequence, open_.at(sequence).descriptor, kAnnounces));
}

void Group::Loop::heard(net::Rank from, const Note& note) {
  if (ended_) return;
  const std::uint64_t sequence = note.number;
  const Descriptor theirs{{note.detail[0], note.detail[1]}};
  if (sequence > started_) {
    if (ahead_.size() >= kAheadLimit) {
      return abort(Error(Code::mismatch, "rank " + std::to_string(from) + " is more than " + std::to_string(kAheadLimit) +
                                             " collectives ahead of rank " + std::to_string(transport_.rank())));
    }
    ahead_[sequence].emplace_back(from, theirs);
    return;
  }
  const auto ours = recent_.find(sequence);
  if (ours == recent_.end()) return;  // long done
  compare(from, sequence, theirs, ours->second);
  if (ended_) return;
  const auto open = open_.find(sequence);
  if (open != open_.end() && theirs == ours->second) {
    open->second.entered[from] = true;
    if (settings_.check) run_if_checked(sequence);
  }
  // A member that announces still waits; it learns that this one is in too (or already through).
  if (note.tag == kAnnounces && !settings_.check) {
    notes_->send(from, entered(sequence, ours->second, kAnswers));
  }
}

// Two members may find two differences at once, and all shall read the same line: the first that rank 0 hears of.
void Group::Loop::compare(net::Rank from, std::uint64_t sequence, const Descriptor& theirs, const Descriptor& ours) {
  if (theirs == ours) return;
  const std::pair own{transport_.rank(), ours}, other{from, theirs};
  const auto& [low, high] = own.first < from ? std::tie(own, other) : std::tie(other, own);
  Note finding{NoteKind::differ, 0, sequence, std::uint64_t{low.first} << 32 | high.first};
  std::copy(low.second.words.begin(), low.second.words.end(), finding.detail.begin());
  std::copy(high.second.words.begin(), high.second.words.end(), finding.detail.begin() + 2);
  transport_.rank() == 0 ? differ(finding) : notes_->send(0, finding);
}

// To rank 0 it may be another's finding; whatever reaches a member else is rank 0's word.
void Group::Loop::differ(const Note& verdict) {
  if (ended_) return;
  notes_->send_all(verdict);  // everybody tells everybody: else one that leaves upon it may be heard before rank 0
  const auto& detail = verdict.detail;
  const auto side = [](std::uint64_t rank, const Descriptor& descriptor) {
    return "rank " + std::to_string(rank) + " calls " + descriptor.show();
  };
  end(failure_of(Error(Code::mismatch, side(verdict.value >> 32, {{detail[0], detail[1]}}) + ", " +
                                           side(verdict.value & 0xffff'ffffu, {{detail[2], detail[3]}}),
                       "operation " + std::to_string(verdict.number),
                       "all members must call the same collectives in the same order, with equal sizes and types")));
}

void Group::Loop::run_if_checked(std::uint64_t sequence) {
  const auto open = open_.find(sequence);
  if (open == open_.end() || open->second.running) return;
  const auto& entered = open->second.entered;
  if (std::all_of(entered.begin(), entered.end(), [](bool in) { return in; })) run(sequence);
}

std::string Group::Loop::waiting() const {
  std::string text;
  if (!runner_) return text;
  for (const std::string& line : runner_->waiting()) text += (text.empty() ? "" : "; ") + line;
  return text;
}

// --- point to point, and the monitored barrier; after close() there are none any more

void Group::Loop::send(net::Rank to, std::uint32_t tag, std::span<const std::byte> bytes, Nanoseconds patience, net::Done done) {
  if (ended_) return done(ended_);
  points_->send(to, tag, bytes, patience, std::move(done));
}

void Group::Loop::receive(std::optional<net::Rank> from, std::uint32_t tag, std::span<std::byte> into, Nanoseconds patience,
                          Points::Received done) {
  if (ended_) return done(ended_, 0);
  points_->receive(from, tag, into, patience, std::move(done));
}

void Group::Loop::monitored_barrier(Nanoseconds patience, bool all_missing, net::Done done) {
  if (ended_) return done(ended_);
  barrier_->enter(patience, all_missing, std::move(done));
}

// --- the end

void Group::Loop::end(const net::Failure& why) {
  if (ended_) return;
  ended_ = why;
  std::vector<std::uint64_t> sequences;
  for (const auto& [sequence, open] : open_) sequences.push_back(sequence);
  for (const std::uint64_t sequence : sequences) {
    const auto open = open_.find(sequence);
    if (open == open_.end()) continue;
    if (open->second.running) {
      stop_timers(open->second);  // done comes later, perhaps after close()
      runner_->cancel(streams_of(sequence, open->second.descriptor), why);
    } else {
      finish(sequence, why);
    }
  }
  ahead_.clear();
  points_->end(why);
  barrier_->end(why);
}

void Group::Loop::abort(const Error& why) {
  if (ended_) return;
  end(failure_of(why));
  transport_.fail(why);
}

void Group::Loop::when_told(std::function<void()> fn) { notes_->when_sent(std::move(fn)); }

void Group::Loop::close() {
  end(failure_of(Error(Code::cancelled, "the process group was destroyed")));
  barrier_.reset();
  points_.reset();
  notes_.reset();
  runner_.reset();
}

}  // namespace shoal::nn

#include "shoal/nn/backend_loop.h"

#include <algorithm>
#include <numeric>

#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/core/text.h"

namespace shoal::nn {
namespace {

using collective::Collective;

enum Channel : std::uint16_t { kCollectives = 1, kNotes = 2, kMessages = 3 };
constexpr std::size_t kRecent = 256;
constexpr std::size_t kAheadLimit = 65536;  // collectives that others have entered and this member has not
constexpr Nanoseconds kPatienceInSilence = std::chrono::seconds(1);  // then members tell what they wait in

constexpr const char* kCallNames[] = {"broadcast", "all_reduce",     "reduce",     "all_gather", "gather",
                                      "scatter",   "reduce_scatter", "all_to_all", "barrier"};

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

net::Failure failure_of(const Error& error) { return std::make_shared<const Error>(error); }

std::string operation_name(std::uint64_t sequence, const Descriptor& descriptor) {
  return "operation " + std::to_string(sequence) + ", " + descriptor.show();
}

// The streams of one collective. What the member believes it to be is part of the name, so that members in different
// ones never take each other's bytes for their own: they wait, announce, and learn that they differ.
std::uint64_t streams_of(std::uint64_t sequence, const Descriptor& descriptor) {
  constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t digest = 0;
  for (const std::uint64_t word : descriptor.words) digest = (digest ^ word) * kGolden, digest ^= digest >> 32;
  return net::operation_in(kCollectives, (digest & 0xffff) << 32 | (sequence & 0xffff'ffffu));
}

bool adds(Operation operation) { return operation == Operation::all_reduce || operation == Operation::reduce || operation == Operation::reduce_scatter; }
bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather || operation == Operation::scatter;
}

}  // namespace

const char* name(Operation operation) { return kCallNames[static_cast<std::size_t>(operation)]; }

Descriptor Descriptor::of(const Collect& what) {
  const auto byte = [](auto value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t op = adds(what.operation) ? byte(what.op) : 0;
  const std::uint64_t root = has_root(what.operation) ? what.root : 0;
  return {{byte(what.operation) | byte(what.type) << 8 | op << 16 | byte(what.comparable) << 24 | root << 32,
           what.comparable ? what.total : 0, 0}};
}

std::string Descriptor::show() const {
  const std::uint64_t call = words[0] & 255, type = words[0] >> 8 & 255, op = words[0] >> 16 & 255;
  if (call >= std::size(kCallNames) || type > static_cast<std::uint64_t>(DType::boolean) ||
      op > static_cast<std::uint64_t>(ReduceOp::bit_xor)) {
    return "an unknown operation";
  }
  std::string text = kCallNames[call];
  if (static_cast<Operation>(call) == Operation::barrier) return text;
  if (words[0] >> 24 & 1) text += " of " + std::to_string(words[1]) + " " + shoal::name(static_cast<DType>(type));
  if (adds(static_cast<Operation>(call))) text += std::string(" (") + shoal::name(static_cast<ReduceOp>(op)) + ")";
  if (has_root(static_cast<Operation>(call))) text += ", root " + std::to_string(words[0] >> 32);
  return text;
}

Group::Loop::Loop(net::Transport& transport, Settings settings)
    : transport_(transport), settings_(settings), barriers_of_(transport.size()) {
  std::vector<net::Rank> everybody(transport.size());
  std::iota(everybody.begin(), everybody.end(), 0u);
  runner_ = std::make_unique<collective::Runner>(transport, everybody);
  notes_ = std::make_unique<Notes>(transport, net::operation_in(kNotes, 0));
  points_ = std::make_unique<Points>(transport, *notes_, kMessages);
}

void Group::Loop::listen() {
  notes_->on(NoteKind::entered, [this](net::Rank from, const Note& note) { heard(from, note); });
  notes_->on(NoteKind::arrived, [this](net::Rank from, const Note& note) {
    barriers_of_[from] = note.number;
    let_go();
  });
  notes_->on(NoteKind::leave, [this](net::Rank, const Note& note) {
    if (barrier_ && barrier_->number == note.number) end_barrier(nullptr);
  });
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
      open.entered[from] = true;
      compare(from, sequence, theirs, descriptor);
      if (ended_) return;  // `open` is gone
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
  const collective::LinkModel& link = settings_.link;
  const Collective kind = kind_of(what.operation);
  const std::uint64_t bytes = what.total * size_of(what.type);
  try {
    const std::string name = collective::choose(kind, transport_.size(), static_cast<double>(bytes), link);
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
  const Open& open = open_.at(sequence);
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
  if (!closed_) {
    transport_.cancel(node.mapped().deadline);
    if (node.mapped().announcement != 0) transport_.cancel(node.mapped().announcement);
  }
  node.mapped().done(failure);
  if (ended_ || open_.empty()) return;
  const auto& [first, open] = *open_.begin();
  if (open.what.operation == Operation::barrier) settings_.check ? run_if_checked(first) : run(first);
}

const collective::Verified& Group::Loop::program(Collective kind, const std::string& name, std::uint32_t root) {
  const auto key = std::tuple(kind, name, root);
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    found = programs_.emplace(key, collective::verify(collective::build(kind, name, transport_.size(), root))).first;
  }
  return found->second;
}

// --- what members believe

void Group::Loop::announce(std::uint64_t sequence) {
  open_.at(sequence).announcement = 0;
  Note note{NoteKind::entered, 0, sequence, 0};
  note.detail = open_.at(sequence).descriptor.words;
  for (net::Rank to = 0; to < transport_.size(); ++to) {
    if (to != transport_.rank()) notes_->send(to, note);
  }
}

void Group::Loop::heard(net::Rank from, const Note& note) {
  if (ended_) return;
  const std::uint64_t sequence = note.number;
  const Descriptor theirs{note.detail};
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
  if (open != open_.end()) {
    open->second.entered[from] = true;
    if (settings_.check) run_if_checked(sequence);
  }
  // A member that announces still waits; it learns that this one is in too (or already through). tag 1: an answer.
  if (note.tag == 0 && !settings_.check) {
    Note answer{NoteKind::entered, 1, sequence, 0};
    answer.detail = ours->second.words;
    notes_->send(from, answer);
  }
}

void Group::Loop::compare(net::Rank from, std::uint64_t sequence, const Descriptor& theirs, const Descriptor& ours) {
  if (theirs == ours || ended_) return;
  // Worded alike by both sides: the lower rank first.
  const net::Rank own = transport_.rank();
  const auto side = [](net::Rank rank, const Descriptor& descriptor) {
    return "rank " + std::to_string(rank) + " calls " + descriptor.show();
  };
  const std::string both = own < from ? side(own, ours) + ", " + side(from, theirs) : side(from, theirs) + ", " + side(own, ours);
  abort(Error(Code::mismatch, both, "operation " + std::to_string(sequence),
              "all members must call the same collectives in the same order, with equal sizes and types"));
}

void Group::Loop::run_if_checked(std::uint64_t sequence) {
  const auto open = open_.find(sequence);
  if (open == open_.end() || open->second.running) return;
  const auto& entered = open->second.entered;
  if (std::all_of(entered.begin(), entered.end(), [](bool in) { return in; })) run(sequence);
}

// "rank 2 has", "ranks 1, 3 have"; empty if nobody is missing.
std::string Group::Loop::missing_ranks(const std::vector<bool>& there) const {
  std::string ranks;
  for (net::Rank rank = 0; rank < there.size(); ++rank) {
    if (!there[rank]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (ranks.empty()) return "";
  return ranks.find(',') == std::string::npos ? "rank " + ranks + " has" : "ranks " + ranks + " have";
}

std::string Group::Loop::waiting() const {
  std::string text;
  if (!runner_) return text;
  for (const std::string& line : runner_->waiting()) text += (text.empty() ? "" : "; ") + line;
  return text;
}

// --- the monitored barrier

void Group::Loop::monitored_barrier(Nanoseconds patience, bool all_missing, net::Done done) {
  if (ended_) return done(ended_);
  if (barrier_) return done(failure_of(Error(Code::invalid_argument, "a monitored barrier of this group is already open")));
  const std::uint64_t number = ++barriers_;
  barrier_ = Barrier{number, all_missing, patience, std::move(done), 0};
  barrier_->deadline = transport_.at(transport_.now() + patience, [this] { barrier_timed_out(); });
  if (transport_.rank() != 0) {
    notes_->send(0, {NoteKind::arrived, 0, number, 0});
    return;
  }
  barriers_of_[0] = number;
  let_go();
}

void Group::Loop::let_go() {
  if (!barrier_ || transport_.rank() != 0) return;
  const std::uint64_t number = barrier_->number;
  if (std::any_of(barriers_of_.begin(), barriers_of_.end(), [&](std::uint64_t at) { return at < number; })) return;
  for (net::Rank to = 1; to < transport_.size(); ++to) notes_->send(to, {NoteKind::leave, 0, number, 0});
  end_barrier(nullptr);
}

void Group::Loop::barrier_timed_out() {
  std::vector<bool> there(transport_.size(), true);
  if (transport_.rank() == 0) {
    for (net::Rank rank = 0; rank < there.size(); ++rank) {
      there[rank] = barriers_of_[rank] >= barrier_->number;
      if (!there[rank] && !barrier_->all_missing) break;
    }
  }
  const std::string missing = missing_ranks(there);
  const std::string within = " within " + show_seconds(Seconds(barrier_->patience).count());
  end_barrier(failure_of(Error(Code::timeout, missing.empty() ? "rank 0 has not let this member go on" + within
                                                              : missing + " not come" + within,
                               "monitored_barrier")));
}

void Group::Loop::end_barrier(const net::Failure& failure) {
  const Barrier barrier = std::move(*barrier_);
  barrier_.reset();
  transport_.cancel(barrier.deadline);
  barrier.done(failure);
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
      runner_->cancel(streams_of(sequence, open->second.descriptor), why);
    } else {
      finish(sequence, why);
    }
  }
  ahead_.clear();
  points_->end(why);
  if (barrier_) end_barrier(why);
}

void Group::Loop::abort(const Error& why) {
  if (ended_) return;
  end(failure_of(why));
  transport_.fail(why);
}

void Group::Loop::close() {
  end(failure_of(Error(Code::cancelled, "the process group was destroyed")));
  points_.reset();
  notes_.reset();
  runner_.reset();
  closed_ = true;
}

}  // namespace shoal::nn

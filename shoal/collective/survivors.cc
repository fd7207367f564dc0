#include "shoal/collective/survivors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/collective/agreement.h"

namespace shoal::collective {
namespace {

constexpr std::uint64_t kOfProtocol = 0xffff'ffff'ffff;  // the operation of our own streams; those of attempts begin with their epoch
constexpr std::uint32_t kEpochShift = 32;

enum class Kind : std::uint64_t { begun = 1, held = 2, vote = 3 };
struct Said {                  // begins every message; a vote follows
  Kind kind;
  std::uint64_t epoch, operation;
};

enum class Phase : std::uint8_t {
  idle,      // no work is open
  waiting,   // for the group to agree; not begun in this epoch
  running,   // its handler is owed
  complete,  // the result is here; not all others have said that they have begun
  holding,   // not all others have said that they hold it
  stopping,  // its handler is owed
};

}  // namespace

struct Survivors::Impl : std::enable_shared_from_this<Survivors::Impl> {
  Impl(net::Transport& transport_in, std::vector<net::Rank> members_in, std::uint16_t channel_in)
      : transport(transport_in), members(std::move(members_in)), channel(channel_in),
        agreement(static_cast<std::uint32_t>(members.size()), place_in(members, transport.rank())), peers(members.size()),
        said_bytes(sizeof(Said) + vote_bytes(static_cast<std::uint32_t>(members.size()))) {}

  void open();
  void listen(std::uint32_t place);
  void hear(std::uint32_t place);
  void tell(Kind kind, std::uint64_t operation);
  void lose(net::Rank rank);
  void decide();
  void conclude();
  void renew_runner();
  void begin();
  void begin_if_quiet();
  void settled(std::uint64_t attempt_number, const net::Failure& why);
  void go_on();
  void finish(net::Failure why);
  void late();
  net::Failure why_given_up() const;
  net::Failure why_stopped() const;
  std::string missing() const;
  void end(const net::Failure& why);
  bool all_said(Kind kind) const;
  bool said(std::uint32_t place, Kind kind, std::uint64_t operation) const;

  struct Peer {
    std::vector<std::byte> message;   // being received
    Said begun{}, held{};             // the latest
  };

  net::Transport& transport;
  const std::vector<net::Rank> members;
  const std::uint16_t channel;
  Agreement agreement;
  std::vector<Peer> peers;            // by place
  const std::size_t said_bytes;
  std::shared_ptr<Runner> runner;
  net::Failure failure;               // with which all ended

  Phase phase = Phase::idle;
  std::shared_ptr<Work> work;
  std::uint64_t started = 0;          // operations; the open one is started-1
  std::uint64_t next = 0;             // of the transport, in this epoch
  std::uint64_t attempts = 0;         // so that a handler of one that is over is known
  std::uint32_t operations = 0;
  std::vector<net::Rank> contributors;
  std::string label;
  std::uint64_t timer = 0;
  std::string waited_for;             // when the patience was over
  net::Failure own_fault;             // why this member cannot do the open operation
  net::Failure given_up;              // it is over as soon as it has stopped
};

// --- the others

void Survivors::Impl::open() {
  renew_runner();
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    peers[place].message.resize(said_bytes);
    if (place != agreement.self()) listen(place);
  }
  transport.on_lost([weak = weak_from_this()](net::Rank rank, const net::Failure&) {
    if (const auto self = weak.lock()) self->lose(rank);
  });
  transport.on_failure([weak = weak_from_this()](const net::Failure& why) {
    if (const auto self = weak.lock()) self->end(why);
  });
}

void Survivors::Impl::listen(std::uint32_t place) {
  transport.receive(members[place], {net::operation_in(channel, kOfProtocol), 0}, net::kUrgent, peers[place].message,
                    [self = shared_from_this(), place](const net::Failure& why) {
                      if (self->failure) return;
                      if (why) return self->lose(self->members[place]);  // one that has left, too
                      self->hear(place);
                      self->listen(place);
                    });
}

void Survivors::Impl::tell(Kind kind, std::uint64_t operation) {
  const auto message = std::make_shared<std::vector<std::byte>>(said_bytes);
  const Said said{kind, agreement.concluded().epoch(), operation};
  std::memcpy(message->data(), &said, sizeof said);
  if (kind == Kind::vote) encode(agreement.next_vote(), std::span(*message).subspan(sizeof said));
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    if (place == agreement.self() || agreement.concluded().lost[place]) continue;  // whom this vote gives up hears so: it may live, its link closed
    transport.send(members[place], {net::operation_in(channel, kOfProtocol), 0}, net::kUrgent, *message, [message](const net::Failure&) {});
  }
}

void Survivors::Impl::hear(std::uint32_t place) {
  Peer& peer = peers[place];
  Said said;
  std::memcpy(&said, peer.message.data(), sizeof said);
  switch (said.kind) {
    case Kind::begun: peer.begun = said; break;
    case Kind::held: peer.held = said; break;
    case Kind::vote: {
      const auto vote = decode_vote(std::span(peer.message).subspan(sizeof said), static_cast<std::uint32_t>(members.size()));
      if (!vote) return transport.fail(Error(Code::mismatch, fmt::format("rank {} votes as no member of this group could", members[place])));
      if (agreement.heard(place, *vote)) decide();
      return conclude();
    }
    default: return transport.fail(Error(Code::mismatch, fmt::format("rank {} says what no member of this group could", members[place])));
  }
  go_on();
}

void Survivors::Impl::lose(net::Rank rank) {
  const auto found = std::ranges::find(members, rank);
  if (failure || found == members.end()) return;
  const auto place = static_cast<std::uint32_t>(found - members.begin());
  if (agreement.lose(place)) decide();
  conclude();
}

// --- agreement

// This member has learned something: its attempt stands still from here on, and it votes.
void Survivors::Impl::decide() {
  if (agreement.view().lost[agreement.self()]) {
    return end(std::make_shared<const Error>(Code::peer_lost, fmt::format("this member (rank {}) was given up by the others", transport.rank())));
  }
  if (phase == Phase::complete) phase = Phase::waiting;
  if (phase == Phase::running) {
    phase = Phase::stopping;
    work->stop(why_stopped());
  }
  tell(Kind::vote, agreement.held());
}

void Survivors::Impl::conclude() {
  if (failure || !agreement.conclude()) return;
  next = 0;
  renew_runner();  // a Work may have ended the one it had
  if (phase != Phase::idle) {
    const auto fate = agreement.fate(started - 1);
    if (fate == Agreement::Fate::given_up) given_up = why_given_up();
    if (phase == Phase::holding && fate == Agreement::Fate::committed) {
      finish(nullptr);
    } else if (phase == Phase::holding) {
      phase = Phase::waiting;
    }
  }
  begin_if_quiet();
}

void Survivors::Impl::renew_runner() {
  std::vector<net::Rank> living;
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    if (!agreement.concluded().lost[place]) living.push_back(members[place]);
  }
  runner = std::make_shared<Runner>(transport, std::move(living));
}

// --- the open operation

void Survivors::Impl::begin_if_quiet() {
  if (phase != Phase::waiting || agreement.deciding()) return;
  if (given_up) return finish(given_up);
  begin();
}

void Survivors::Impl::begin() {
  phase = Phase::running;
  tell(Kind::begun, started - 1);
  const std::uint64_t epoch = agreement.concluded().epoch();
  const Attempt attempt{runner, epoch, net::operation_in(channel, (epoch << kEpochShift) + next)};
  next += operations;
  work->begin(attempt, [self = shared_from_this(), number = ++attempts](const net::Failure& why) { self->settled(number, why); });
}

// The attempt has come to its end here, this way or that.
void Survivors::Impl::settled(std::uint64_t attempt_number, const net::Failure& why) {
  if (attempt_number != attempts || phase == Phase::idle) return;
  if (failure) return finish(failure);
  if (phase == Phase::stopping) {
    phase = Phase::waiting;
    return begin_if_quiet();
  }
  phase = why ? Phase::waiting : Phase::complete;
  if (!why) return go_on();
  if (why->code() == Code::peer_lost) return;  // who it is comes next
  own_fault = why;
  agreement.give_up(started - 1);
  decide();
  conclude();
}

bool Survivors::Impl::said(std::uint32_t place, Kind kind, std::uint64_t operation) const {
  const Said& said = kind == Kind::begun ? peers[place].begun : peers[place].held;
  return said.kind == kind && said.epoch == agreement.concluded().epoch() && said.operation == operation;
}

bool Survivors::Impl::all_said(Kind kind) const {
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    if (place != agreement.self() && !agreement.concluded().lost[place] && !said(place, kind, started - 1)) return false;
  }
  return true;
}

// On from what the others have said.
void Survivors::Impl::go_on() {
  if (agreement.deciding()) return;
  if (phase == Phase::complete && all_said(Kind::begun)) {
    phase = Phase::holding;
    contributors.clear();
    for (std::uint32_t place = 0; place < members.size(); ++place) {
      if (!agreement.concluded().lost[place]) contributors.push_back(members[place]);
    }
    agreement.hold(started - 1);
    tell(Kind::held, started - 1);
  }
  if (phase == Phase::holding && all_said(Kind::held)) finish(nullptr);
}

void Survivors::Impl::finish(net::Failure why) {
  transport.cancel(timer);
  phase = Phase::idle;
  own_fault = given_up = nullptr;
  const auto done = std::exchange(work, nullptr);
  why ? done->failed(why) : done->committed(contributors);
}

// --- errors

void Survivors::Impl::late() {
  if (phase == Phase::idle || failure) return;
  waited_for = missing();
  agreement.give_up(started - 1);
  decide();
  conclude();
}

// For whom this member waits.
std::string Survivors::Impl::missing() const {
  std::vector<net::Rank> silent;
  for (const Kind kind : {Kind::begun, Kind::held}) {
    for (std::uint32_t place = 0; place < members.size(); ++place) {
      if (place != agreement.self() && !agreement.concluded().lost[place] && !said(place, kind, started - 1)) silent.push_back(members[place]);
    }
    if (silent.empty()) continue;
    if (kind == Kind::begun) return fmt::format("rank {} to begin it", fmt::join(silent, ", "));
    break;
  }
  const auto lines = runner->waiting();
  if (!lines.empty()) return fmt::format("{}", fmt::join(lines, "; "));
  return fmt::format("rank {} to have all of it", fmt::join(silent, ", "));
}

// Why an attempt is stopped. Others may have told of a loss before the transport here has.
net::Failure Survivors::Impl::why_stopped() const {
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    if (!agreement.view().lost[place] || agreement.concluded().lost[place]) continue;
    const net::Failure known = transport.lost(members[place]);
    return known ? known : std::make_shared<const Error>(Code::peer_lost, fmt::format("rank {} was lost, say the others", members[place]));
  }
  return std::make_shared<const Error>(Code::cancelled, "it is given up by the members together", label);
}

net::Failure Survivors::Impl::why_given_up() const {
  if (own_fault) return own_fault;
  if (waited_for.empty()) return std::make_shared<const Error>(Code::timeout, "another member gave it up", label);
  return std::make_shared<const Error>(Code::timeout, "the deadline has passed, waiting for " + waited_for, label,
                                       "raise SHOAL_TIMEOUT if a member may be this slow");
}

void Survivors::Impl::end(const net::Failure& why) {
  if (failure) return;
  failure = why;
  transport.close(net::operation_in(channel, kOfProtocol), why);
  if (phase == Phase::running) {
    phase = Phase::stopping;
    work->stop(why);
  } else if (phase != Phase::idle && phase != Phase::stopping) {
    finish(why);
  }
}

// --- the group

Survivors::Survivors(net::Transport& transport, std::vector<net::Rank> members, std::uint16_t channel)
    : impl_(std::make_shared<Impl>(transport, std::move(members), channel)) {
  impl_->open();
}

Survivors::~Survivors() {
  impl_->end(std::make_shared<const Error>(Code::cancelled, "the group of members is closing"));
  impl_->runner.reset();  // from here on the transport's handlers alone hold the rest
}

void Survivors::start(std::shared_ptr<Work> work, std::uint32_t operations, Nanoseconds patience, std::string label) {
  Impl& impl = *impl_;
  if (impl.phase != Phase::idle) throw Error(Code::internal, "an operation begins before the last is done", label);
  const std::uint64_t operation = impl.started++;
  const bool over = impl.agreement.held() > operation;  // the others gave it up before it began here
  if (impl.failure || over) {
    const auto why = impl.failure ? impl.failure : std::make_shared<const Error>(Code::timeout, "the others have given it up", label);
    return impl.transport.post([work = std::move(work), why] { work->failed(why); });
  }
  impl.work = std::move(work);
  impl.operations = operations;
  impl.label = std::move(label);
  impl.waited_for.clear();
  impl.phase = Phase::waiting;
  impl.timer = impl.transport.at(impl.transport.now() + patience, [weak = std::weak_ptr(impl_), operation] {
    const auto self = weak.lock();
    if (self && self->started == operation + 1) self->late();
  });
  impl.begin_if_quiet();
}

std::vector<net::Rank> Survivors::members() const { return impl_->runner->members(); }

std::vector<net::Rank> Survivors::ahead() const {
  std::vector<net::Rank> ranks;
  for (std::uint32_t place = 0; place < impl_->members.size(); ++place) {
    if (impl_->said(place, Kind::begun, impl_->started)) ranks.push_back(impl_->members[place]);
  }
  return ranks;
}

}  // namespace shoal::collective

#include "shoal/net/narrowed.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "shoal/net/call.h"

namespace shoal::net {

struct Narrowed::State : std::enable_shared_from_this<State> {
  State(Transport& transport, std::vector<Rank> ranks, std::uint16_t channel, std::uint16_t count)
      : below(transport), members(std::move(ranks)), first_channel(channel), channels(count),
        own(static_cast<Rank>(std::ranges::find(members, transport.rank()) - members.begin())) {}

  void listen();
  void end(const Failure& why);
  Failure known_failure() const {
    const std::lock_guard lock(mutex);
    return failure;
  }
  // That of the one below; remembered, so that it ends with this one.
  std::uint64_t opened(std::uint64_t operation) {
    const std::uint64_t there = below_of(operation);
    open.insert(there);
    return there;
  }
  std::uint64_t below_of(std::uint64_t operation) const {
    if ((operation >> 48) >= channels) throw Error(Code::internal, "a channel beyond those of a narrowed transport");
    return operation + (std::uint64_t{first_channel} << 48);
  }

  Transport& below;
  const std::vector<Rank> members;
  const std::uint16_t first_channel, channels;
  const Rank own;
  // of the loop:
  std::set<std::uint64_t> open;  // operations of the one below
  std::vector<std::function<void(const Failure&)>> handlers;

  mutable std::mutex mutex;
  Failure failure;               // guarded by mutex; written on the loop
};

void Narrowed::State::listen() {
  below.on_lost([weak = weak_from_this()](Rank lost, const Failure& why) {
    const auto self = weak.lock();
    if (self && std::ranges::count(self->members, lost) != 0) self->end(why);
  });
  below.on_failure([weak = weak_from_this()](const Failure& why) {
    if (const auto self = weak.lock()) self->end(why);
  });
}

void Narrowed::State::end(const Failure& why) {
  {
    const std::lock_guard lock(mutex);
    if (failure) return;
    failure = why;
  }
  for (const std::uint64_t operation : std::exchange(open, {})) below.close(operation, why);
  for (auto& handler : std::exchange(handlers, {})) below.post([handler = std::move(handler), why] { handler(why); });
}

Narrowed::Narrowed(Transport& below, std::vector<Rank> members, std::uint16_t first_channel, std::uint16_t channels)
    : state_(std::make_shared<State>(below, std::move(members), first_channel, channels)) {
  if (!call(below, [state = state_] { state->listen(); })) throw Error(Code::cancelled, "the transport has ended", "those who are left");
}

Narrowed::~Narrowed() {
  const Failure why = std::make_shared<const Error>(Code::cancelled, "what members did together is over");
  call(state_->below, [state = state_, why] { state->end(why); });
  call(state_->below, [] {});  // behind the handlers of what was open
}

Rank Narrowed::rank() const { return state_->own; }
Rank Narrowed::size() const { return static_cast<Rank>(state_->members.size()); }
void Narrowed::post(std::function<void()> fn) { state_->below.post(std::move(fn)); }
bool Narrowed::on_loop() const { return state_->below.on_loop(); }
Instant Narrowed::now() const { return state_->below.now(); }
std::uint64_t Narrowed::at(Instant when, std::function<void()> fn) { return state_->below.at(when, std::move(fn)); }
void Narrowed::cancel(std::uint64_t timer) { state_->below.cancel(timer); }
bool Narrowed::drive(const std::function<bool()>& ready, Instant deadline) { return state_->below.drive(ready, deadline); }

void Narrowed::send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) {
  if (const Failure why = state_->known_failure()) return post([done = std::move(done), why] { done(why); });
  state_->below.send(state_->members.at(to), {state_->opened(tag.operation), tag.lane}, priority, bytes, std::move(done));
}

void Narrowed::receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) {
  if (const Failure why = state_->known_failure()) return post([done = std::move(done), why] { done(why); });
  state_->below.receive(state_->members.at(from), {state_->opened(tag.operation), tag.lane}, priority, into, std::move(done));
}

void Narrowed::give(Rank to, Tag tag, Priority priority, Bytes bytes, Done done) {
  if (const Failure why = state_->known_failure()) return post([done = std::move(done), why] { done(why); });
  state_->below.give(state_->members.at(to), {state_->opened(tag.operation), tag.lane}, priority, std::move(bytes), std::move(done));
}

void Narrowed::take(Rank from, Tag tag, Priority priority, std::size_t size, Taken done) {
  if (const Failure why = state_->known_failure()) return post([done = std::move(done), why] { done(why, {}); });
  state_->below.take(state_->members.at(from), {state_->opened(tag.operation), tag.lane}, priority, size, std::move(done));
}

void Narrowed::close(std::uint64_t operation, const Failure& why) {
  const std::uint64_t there = state_->below_of(operation);
  state_->open.erase(there);
  state_->below.close(there, why);
}

Failure Narrowed::failure() const { return state_->known_failure(); }

void Narrowed::on_failure(std::function<void(const Failure&)> handler) {
  if (const Failure why = failure()) return post([handler = std::move(handler), why] { handler(why); });
  state_->handlers.push_back(std::move(handler));
}

void Narrowed::fail(const Error& why) {
  if (failure()) return;
  if (why.code() != Code::peer_lost) state_->below.fail(why);
  state_->end(std::make_shared<const Error>(why));
}

void Narrowed::doing(std::string activity) { state_->below.doing(std::move(activity)); }
LinkStats Narrowed::link(Rank peer) const { return state_->below.link(state_->members.at(peer)); }
std::shared_ptr<std::byte> Narrowed::lendable(std::size_t bytes) { return state_->below.lendable(bytes); }
std::string Narrowed::host(Rank peer) const { return state_->below.host(state_->members.at(peer)); }

}  // namespace shoal::net

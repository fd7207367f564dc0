// Each ordered pair of members has two streams: calls, each a header that the bytes of a put follow; and the bytes of gets, in
// the order in which they were called. The owner reads one header at a time, and the next one when that call is done: so calls
// keep their order, and a region that is not there holds them back by the stream's own credit.
#include "shoal/net/regions.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shoal/net/ucx.h"

namespace shoal::net {
namespace {

constexpr std::uint32_t kCalls = 0, kAnswers = 1;  // lanes

struct Call {
  // offer: the bytes behind it are this member's address in UCX, none where it has none. known: those behind it open `region`, which begins at `offset` of
  // its owner's memory and has `value` bytes. joined: the caller's endpoint of UCX is connected, or there will be none.
  enum class Kind : std::uint32_t { put = 1, get = 2, signal = 3, offer = 4, known = 5, joined = 6 } kind = Kind::signal;
  std::uint32_t region = 0;
  std::uint64_t offset = 0, length = 0;
  std::uint64_t value = 0;                         // of get: its priority's; of signal: the sequence number
};

constexpr std::uint64_t kMostOfUcx = 64 << 10;  // bytes of an address or a key

// A call that waits for its turn.
struct HeldCall {
  Call call;
  Priority priority;
  std::span<const std::byte> bytes;
  std::span<std::byte> into;
  Done done;
};

Error outside(Rank from, const Call& call, Rank owner, std::uint64_t size) {
  return Error(Code::mismatch, "rank " + std::to_string(from) + " reaches for " + std::to_string(call.length) + " bytes from byte " +
                                   std::to_string(call.offset) + " of region " + std::to_string(call.region) + " of rank " +
                                   std::to_string(owner) + ", which has " + std::to_string(size),
               "regions", "register the same sizes on all members");
}
bool is_inside(const Call& call, std::uint64_t size) { return call.offset <= size && call.length <= size - call.offset; }

}  // namespace

struct Regions::State : std::enable_shared_from_this<State> {
  struct Caller {
    Call call;                                     // being read, or done
    bool held = false;                             // until its region is there
    std::atomic<std::uint64_t> signalled{0};
    Ucx::Blob blob;                                // behind an offer, or a region that is made known
  };
  // What this member calls at another. Without UCX nothing waits.
  struct Called {
    enum class By : std::uint8_t { unknown, streams, ucx };
    struct Known {
      std::size_t number = 0;                      // Ucx::know()'s
      std::uint64_t size = 0;
    };
    std::atomic<By> by{By::streams};
    bool joined = false, peer_joined = false;      // nothing of UCX is being connected any more, from here and from there
    std::deque<HeldCall> waiting;
    std::map<std::uint32_t, Known> regions;
    bool unflushed = false, flushing = false;
  };

  State(Transport& of_transport, std::uint16_t channel)
      : transport(of_transport), operation(operation_in(channel, 0)), callers(of_transport.size()), called(of_transport.size()) {}

  void read_call(Rank from);
  void do_call(Rank from);
  void send_call(Rank to, const Call& call, Priority priority);
  std::span<std::byte> place(Rank from, const Call& call);  // empty: there is no such place, and the job ends
  void read_blob(Rank from);
  void take_blob(Rank from);
  void send_blob(Rank to, Call call, const Ucx::Blob& blob);
  void start_ucx(Puts puts);
  void joined(Rank peer, bool connected);
  void settle(Rank peer);
  bool may_close() const;
  void leave_ucx(const Failure& why);
  void call(Rank to, HeldCall next);
  void go_on(Rank to);
  bool put_one_sided(Rank to, HeldCall& next);      // false: its region is not known yet
  void flush(Rank to);
  void give_up(Rank to, const Failure& why);

  Transport& transport;
  const std::uint64_t operation;
  std::vector<Caller> callers;                     // by rank
  std::vector<Called> called;                      // by rank
  std::unique_ptr<Ucx> ucx;                        // nullptr: not asked for, or not here
  std::string why_not;
  std::map<std::uint32_t, std::span<std::byte>> regions;
};

void Regions::State::read_call(Rank from) {
  Caller& caller = callers[from];
  transport.receive(from, {operation, kCalls}, {}, std::as_writable_bytes(std::span(&caller.call, 1)),
                    [self = shared_from_this(), from](const Failure& why) {
                      if (!why) self->do_call(from);
                    });
}

void Regions::State::do_call(Rank from) {
  Caller& caller = callers[from];
  const Call& call = caller.call;
  if (call.kind == Call::Kind::signal) {
    caller.signalled.store(call.value, std::memory_order_release);
    return read_call(from);
  }
  if (call.kind == Call::Kind::joined) {
    called[from].peer_joined = true;
    settle(from);
    return read_call(from);
  }
  if (call.kind == Call::Kind::offer || call.kind == Call::Kind::known) return read_blob(from);
  caller.held = !regions.contains(call.region);
  if (caller.held) return;
  const std::span<std::byte> bytes = place(from, call);
  if (bytes.size() != call.length) return;
  if (call.kind == Call::Kind::get) {
    const Priority priority{Class::bulk, static_cast<std::uint32_t>(call.value), 0};
    transport.send(from, {operation, kAnswers}, priority, bytes, [](const Failure&) {});
    return read_call(from);
  }
  transport.receive(from, {operation, kCalls}, {}, bytes, [self = shared_from_this(), from](const Failure& why) {
    if (!why) self->read_call(from);
  });
}

std::span<std::byte> Regions::State::place(Rank from, const Call& call) {
  const std::span<std::byte> region = regions.at(call.region);
  if (is_inside(call, region.size())) return region.subspan(call.offset, call.length);
  transport.fail(outside(from, call, transport.rank(), region.size()));
  return {};
}

void Regions::State::send_call(Rank to, const Call& call, Priority priority) {
  const auto sent = std::make_shared<const Call>(call);
  transport.send(to, {operation, kCalls}, priority, std::as_bytes(std::span(sent.get(), 1)), [sent](const Failure&) {});
}

// --- by UCX

// Every member says whether it can, lest another one waits for that.
void Regions::State::start_ucx(Puts puts) {
  try {
    if (puts == Puts::ucx) ucx = std::make_unique<Ucx>([&to = transport](std::function<void()> handler) { to.post(std::move(handler)); });
  } catch (const Error& error) {
    why_not = error.what();
  }
  const Ucx::Blob address = ucx ? ucx->address() : Ucx::Blob();
  for (Rank peer = 0; peer < called.size(); ++peer) {
    if (peer == transport.rank()) continue;
    if (ucx) called[peer].by = Called::By::unknown;
    send_blob(peer, {Call::Kind::offer, 0, 0, 0, 0}, address);
  }
  if (!ucx) return;
  const auto all = [self = weak_from_this()](const auto& do_with) {
    if (const auto state = self.lock()) do_with(*state);
  };
  transport.on_failure([all](const Failure& why) {
    all([&](State& state) {
      for (Rank peer = 0; peer < state.called.size(); ++peer) state.give_up(peer, why);
      if (!state.may_close()) state.leave_ucx(why);  // the others may end their processes now
    });
  });
  transport.on_lost([all](Rank peer, const Failure& why) { all([&](State& state) { state.give_up(peer, why); }); });
}

void Regions::State::send_blob(Rank to, Call call, const Ucx::Blob& blob) {
  call.length = blob.size();
  send_call(to, call, {});
  if (blob.empty()) return;
  const auto sent = std::make_shared<const Ucx::Blob>(blob);
  transport.send(to, {operation, kCalls}, {}, *sent, [sent](const Failure&) {});
}

void Regions::State::read_blob(Rank from) {
  Caller& caller = callers[from];
  if (caller.call.length > kMostOfUcx) return transport.fail(Error(Code::mismatch, "rank " + std::to_string(from) + " sends no address of UCX", "regions"));
  caller.blob.resize(caller.call.length);
  if (caller.blob.empty()) return take_blob(from);
  transport.receive(from, {operation, kCalls}, {}, caller.blob, [self = shared_from_this(), from](const Failure& why) {
    if (!why) self->take_blob(from);
  });
}

void Regions::State::take_blob(Rank from) {
  const auto& [call, blob] = std::tie(callers[from].call, callers[from].blob);
  Called& there = called[from];
  try {
    if (call.kind == Call::Kind::offer && ucx) {
      const auto done = [self = shared_from_this(), from](const Failure& why) {
        if (self->ucx) self->joined(from, !why);
      };
      there.peer_joined = blob.empty();
      if (blob.empty() || !ucx->connect(from, blob, done)) joined(from, false);
    } else if (call.kind == Call::Kind::known && there.by != Called::By::streams) {
      there.regions[call.region] = {blob.empty() ? 0 : ucx->know(from, call.offset, blob), call.value};
    }
  } catch (const Error& error) {
    return transport.fail(error);
  }
  go_on(from);
  read_call(from);
}

void Regions::State::joined(Rank peer, bool connected) {
  called[peer].joined = true;
  if (!connected) called[peer].by = Called::By::streams;
  send_call(peer, {Call::Kind::joined, 0, 0, 0, 0}, {});
  settle(peer);
}

// What is connected in one direction only may still be lost by the other's wire-up.
void Regions::State::settle(Rank peer) {
  Called& there = called[peer];
  if (there.by == Called::By::unknown && there.joined && there.peer_joined) there.by = Called::By::ucx;
  go_on(peer);
}

// Nobody is being connected, and nobody still has to answer a put: UCX would end a process that cannot.
bool Regions::State::may_close() const {
  for (Rank peer = 0; peer < called.size(); ++peer) {
    const Called& there = called[peer];
    if (peer != transport.rank() && (!there.joined || !there.peer_joined || there.unflushed)) return false;
  }
  return true;
}

void Regions::State::leave_ucx(const Failure& why) {
  const auto leaving = std::move(ucx);
  for (Called& there : called) {
    there.by = Called::By::streams;
    there.unflushed = there.flushing = false;
  }
  if (leaving) leaving->leave(why);
}

void Regions::State::call(Rank to, HeldCall next) {
  called[to].waiting.push_back(std::move(next));
  go_on(to);
}

void Regions::State::go_on(Rank to) {
  Called& there = called[to];
  while (!there.waiting.empty() && there.by != Called::By::unknown && !there.flushing) {
    HeldCall& next = there.waiting.front();
    const bool puts = next.call.kind == Call::Kind::put;
    if (puts && there.by == Called::By::ucx) {
      if (!put_one_sided(to, next)) return;
    } else {
      if (there.unflushed) return flush(to);
      send_call(to, next.call, next.priority);
      if (puts) transport.send(to, {operation, kCalls}, next.priority, next.bytes, std::move(next.done));
      if (next.call.kind == Call::Kind::get) transport.receive(to, {operation, kAnswers}, next.priority, next.into, std::move(next.done));
    }
    there.waiting.pop_front();
  }
}

bool Regions::State::put_one_sided(Rank to, HeldCall& next) {
  Called& there = called[to];
  const auto known = there.regions.find(next.call.region);
  if (known == there.regions.end()) return false;
  const auto [number, size] = known->second;
  if (!is_inside(next.call, size)) {
    transport.fail(outside(transport.rank(), next.call, to, size));
    return false;
  }
  if (next.bytes.empty()) {
    transport.post([done = std::move(next.done)] { done(nullptr); });
    return true;
  }
  there.unflushed = true;
  ucx->put(to, number, next.call.offset, next.bytes, std::move(next.done));
  return true;
}

void Regions::State::flush(Rank to) {
  called[to].flushing = true;
  ucx->flush(to, [self = shared_from_this(), to](const Failure& why) {
    if (!self->ucx) return;  // closed meanwhile
    if (why) return self->transport.fail(*why);
    self->called[to].unflushed = self->called[to].flushing = false;
    self->go_on(to);
  });
}

void Regions::State::give_up(Rank to, const Failure& why) {
  for (auto& waiting : std::exchange(called[to].waiting, {})) {
    if (waiting.done) waiting.done(why);
  }
}

// --- what callers see

Regions::Regions(Transport& transport, std::uint16_t channel, Puts puts) : state_(std::make_shared<State>(transport, channel)) {
  for (Rank peer = 0; peer < transport.size(); ++peer) {
    if (peer != transport.rank()) state_->read_call(peer);
  }
  state_->start_ucx(puts);
}

Regions::~Regions() {
  const auto why = std::make_shared<const Error>(Code::cancelled, "the regions are closing");
  if (!state_->may_close()) state_->leave_ucx(why);
  state_->ucx.reset();
  for (Rank peer = 0; peer < state_->called.size(); ++peer) state_->give_up(peer, why);
  state_->transport.close(state_->operation, why);
}

void Regions::add(std::uint32_t region, std::span<std::byte> memory) {
  if (!state_->regions.emplace(region, memory).second) {
    throw Error(Code::invalid_argument, "region " + std::to_string(region) + " is registered already");
  }
  if (state_->ucx) {
    const Call call{Call::Kind::known, region, reinterpret_cast<std::uintptr_t>(memory.data()), 0, memory.size()};
    const Ucx::Blob key = memory.empty() ? Ucx::Blob() : state_->ucx->add(memory);
    for (Rank peer = 0; peer < state_->called.size(); ++peer) {
      if (peer != state_->transport.rank()) state_->send_blob(peer, call, key);
    }
  }
  for (Rank peer = 0; peer < state_->callers.size(); ++peer) {
    if (state_->callers[peer].held && state_->callers[peer].call.region == region) state_->do_call(peer);
  }
}

void Regions::put(Rank to, Place at, Priority priority, std::span<const std::byte> bytes, Done done) {
  state_->call(to, {{Call::Kind::put, at.region, at.offset, bytes.size(), 0}, priority, bytes, {}, std::move(done)});
}

void Regions::get(Rank from, Place at, Priority priority, std::span<std::byte> into, Done done) {
  state_->call(from, {{Call::Kind::get, at.region, at.offset, into.size(), priority.value}, priority, {}, into, std::move(done)});
}

void Regions::signal(Rank to, std::uint64_t sequence) { state_->call(to, {{Call::Kind::signal, 0, 0, 0, sequence}, {}, {}, {}, nullptr}); }

std::uint64_t Regions::signalled(Rank from) const { return state_->callers.at(from).signalled.load(std::memory_order_acquire); }
bool Regions::one_sided(Rank to) const { return state_->called.at(to).by == State::Called::By::ucx; }
const std::string& Regions::why_not() const { return state_->why_not; }

}  // namespace shoal::net

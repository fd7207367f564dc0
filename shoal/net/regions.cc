// Each ordered pair of members has two streams: calls, each a header that the bytes of a put follow; and the bytes of gets, in
// the order in which they were called. The owner reads one header at a time, and the next one when that call is done: so calls
// keep their order, and a region that is not there holds them back by the stream's own credit.
#include "shoal/net/regions.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shoal::net {
namespace {

constexpr std::uint32_t kCalls = 0, kAnswers = 1;  // lanes

struct Call {
  enum class Kind : std::uint32_t { put = 1, get = 2, signal = 3 } kind = Kind::signal;
  std::uint32_t region = 0;
  std::uint64_t offset = 0, length = 0;
  std::uint64_t value = 0;                         // of get: its priority's; of signal: the sequence number
};

}  // namespace

struct Regions::State : std::enable_shared_from_this<State> {
  struct Caller {
    Call call;                                     // being read, or done
    bool held = false;                             // until its region is there
    std::atomic<std::uint64_t> signalled{0};
  };

  State(Transport& of_transport, std::uint16_t channel)
      : transport(of_transport), operation(operation_in(channel, 0)), callers(of_transport.size()) {}

  void read_call(Rank from);
  void do_call(Rank from);
  void send_call(Rank to, const Call& call, Priority priority, Done done = [](const Failure&) {});
  std::span<std::byte> place(Rank from, const Call& call);  // empty: there is no such place, and the job ends

  Transport& transport;
  const std::uint64_t operation;
  std::vector<Caller> callers;                     // by rank
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
  if (call.offset <= region.size() && call.length <= region.size() - call.offset) return region.subspan(call.offset, call.length);
  transport.fail(Error(Code::mismatch, "rank " + std::to_string(from) + " reaches for " + std::to_string(call.length) + " bytes from byte " +
                                           std::to_string(call.offset) + " of region " + std::to_string(call.region) + " of rank " +
                                           std::to_string(transport.rank()) + ", which has " + std::to_string(region.size()),
                       "regions", "register the same sizes on all members"));
  return {};
}

void Regions::State::send_call(Rank to, const Call& call, Priority priority, Done done) {
  const auto sent = std::make_shared<const Call>(call);
  transport.send(to, {operation, kCalls}, priority, std::as_bytes(std::span(sent.get(), 1)),
                 [sent, done = std::move(done)](const Failure& why) { done(why); });
}

Regions::Regions(Transport& transport, std::uint16_t channel) : state_(std::make_shared<State>(transport, channel)) {
  for (Rank peer = 0; peer < transport.size(); ++peer) {
    if (peer != transport.rank()) state_->read_call(peer);
  }
}

Regions::~Regions() { state_->transport.close(state_->operation, std::make_shared<const Error>(Code::cancelled, "the regions are closing")); }

void Regions::add(std::uint32_t region, std::span<std::byte> memory) {
  if (!state_->regions.emplace(region, memory).second) {
    throw Error(Code::invalid_argument, "region " + std::to_string(region) + " is registered already");
  }
  for (Rank peer = 0; peer < state_->callers.size(); ++peer) {
    if (state_->callers[peer].held && state_->callers[peer].call.region == region) state_->do_call(peer);
  }
}

void Regions::put(Rank to, Place at, Priority priority, std::span<const std::byte> bytes, Done done) {
  state_->send_call(to, {Call::Kind::put, at.region, at.offset, bytes.size(), 0}, priority);
  state_->transport.send(to, {state_->operation, kCalls}, priority, bytes, std::move(done));
}

void Regions::get(Rank from, Place at, Priority priority, std::span<std::byte> into, Done done) {
  state_->send_call(from, {Call::Kind::get, at.region, at.offset, into.size(), priority.value}, priority);
  state_->transport.receive(from, {state_->operation, kAnswers}, priority, into, std::move(done));
}

void Regions::signal(Rank to, std::uint64_t sequence, Done done) {
  state_->send_call(to, {Call::Kind::signal, 0, 0, 0, sequence}, {}, std::move(done));
}

std::uint64_t Regions::signalled(Rank from) const { return state_->callers.at(from).signalled.load(std::memory_order_acquire); }

}  // namespace shoal::net

#include <array>
#include <asio/co_spawn.hpp>

#include "shoal/core/text.h"
#include "shoal/net/call.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/coordinator_wire.h"
#include "shoal/net/dial.h"
#include "shoal/net/resolve.h"
#include "shoal/net/whole.h"

namespace shoal::net {

using namespace std::chrono_literals;
using coordination::kMaxKey, coordination::kMaxValue, coordination::kReplyBytes;
using coordination::Op, coordination::Reply, coordination::Request, coordination::Status;

namespace {

constexpr int kRefusals = 3;  // in a row, until this member believes them
constexpr Nanoseconds kLookUpPause = 50ms;
constexpr Nanoseconds kOneCandidate = 10s;  // to connect and to be answered; knock() is bounded itself

}  // namespace

struct CoordinatorClient::Impl {
  std::string address;
  Key key;
  Purpose purpose;
  bool held_by_rank_0 = false;       // the coordinator
  std::optional<Socket> socket;
  Answer refusal = Answer::silent;   // if there is no socket: the last that was heard,
  Endpoint reached;                  // and where anything listens; port 0: nowhere
  std::string tried;                 // what the names in the address stand for
  Nanoseconds patience{};            // for which they were tried
  ForkGuard guard;
  Reply reply;
  std::string value;

  static asio::awaitable<bool> knock_once(std::shared_ptr<Impl> self, std::vector<Endpoint> candidates) {
    Dialled came = co_await knock(std::move(candidates), self->key, self->purpose);
    self->refusal = came.answer;
    self->reached = came.at;
    if (came.socket) {
      self->guard = ForkGuard(came.socket->native_handle());
      self->socket = std::move(came.socket);
    }
    co_return self->socket.has_value();
  }

  [[noreturn]] void refuse() const {
    const std::string at = show(reached);
    const std::string them = "the coordinator at " + at;
    switch (refusal) {
      case Answer::unproved:
        throw Error(Code::invalid_argument, them + " refuses this member: " +
                    (key == derive_key("") ? "the job has a secret and this member has none" : "it has another secret"),
                    "SHOAL_SECRET", kOneSecret);
      case Answer::stale:
        throw Error(Code::mismatch, "generation " + std::to_string(purpose.to) + " of this run is over: a later one has begun", "join",
                    "end this process; its launcher has started another in its place");
      case Answer::elsewhere:
        throw Error(Code::mismatch, them + " is that of another run", "SHOAL_COORD",
                    "two runs must not share a port: choose another, for example by SHOAL_PORT_RANGE");
      case Answer::foreign:
        throw Error(Code::invalid_argument, "what listens at " + at + " is no coordinator of Shoal", "SHOAL_COORD",
                    "choose another port, or end what listens there");
      default: break;
    }
    if (reached.port() != 0) {
      throw Error(Code::invalid_argument, "what listens at " + at + " does not answer", "SHOAL_COORD",
                  "is it a coordinator of Shoal? choose another port, or look at its log");
    }
    if (held_by_rank_0) {
      throw Error(Code::peer_lost, "rank 0, which holds the coordinator, did not appear within " + show_seconds(Seconds(patience).count()) +
                  " at " + tried, "join", "is it running? check the address, and that this host can reach it; or look at its log");
    }
    throw Error(Code::peer_lost, "no coordinator of this job answers at " + tried, "SHOAL_COORD",
                "what shoal run started holds one: is it running? check the address, and that this host can reach it");
  }

  [[noreturn]] void fallen_silent() const {
    const std::string them = "the coordinator at " + address;
    if (held_by_rank_0) throw Error(Code::peer_lost, "rank 0, which holds " + them + ", does not answer any more", "join", "look at its log");
    throw Error(purpose.from == kNobody ? Code::io : Code::peer_lost, them + " does not answer any more", "join");
  }

  static asio::awaitable<bool> converse(std::shared_ptr<Impl> self, std::string request, Nanoseconds patience) {
    const Deadline deadline(*self->socket, patience);
    std::array<std::byte, kReplyBytes> head;
    if (!co_await write_all(*self->socket, request)) co_return false;
    if (!co_await read_all(*self->socket, head)) co_return false;
    const auto reply = coordination::decode_reply(head);
    if (!reply) co_return false;
    self->reply = *reply;
    self->value.resize(self->reply.value);
    co_return co_await read_all(*self->socket, self->value);
  }

  // Runs begin()'s coroutine and waits for its answer; false if there is none within the patience.
  template <class Begin>
  static bool answer_of(Nanoseconds patience, Begin begin) {
    const auto answer = ask<bool>(Loop::shared(), patience + kLoopAnswers, [begin = std::move(begin)](const auto& tell) {
      asio::co_spawn(Loop::shared().io(), begin(), [tell](const std::exception_ptr& failed, bool answered) {
        if (failed) std::rethrow_exception(failed);  // what the network does is an answer; this is a fault of ours, as in spawn.h
        tell(answered);
        Loop::shared().progress();
      });
    });
    return answer.value_or(false);
  }
};

CoordinatorClient::CoordinatorClient(const std::string& secret, const std::string& address, Nanoseconds patience, const std::string& job)
    : impl_(std::make_shared<Impl>()) {
  impl_->address = address;
  impl_->key = derive_key(secret);
  impl_->purpose = {.role = Role::coordinator, .from = kNobody, .to = 0, .job = coordination::purpose_of(job)};
  connect(patience);
}

CoordinatorClient::CoordinatorClient(const std::string& secret, const Place& place, Nanoseconds patience) : impl_(std::make_shared<Impl>()) {
  impl_->address = place.coordinator;
  impl_->held_by_rank_0 = place.launcher != Place::Launcher::shoal;
  impl_->key = derive_key(secret);
  impl_->purpose = {.role = Role::coordinator, .from = place.rank, .to = static_cast<std::uint32_t>(place.generation),
                    .job = coordination::purpose_of(place.job)};
  connect(patience);
}

// A coordinator that does not listen yet, or that does not come to answer, is waited for: its machine may be very busy. One that
// answers, and not as ours does, is asked again: it may be about to end.
void CoordinatorClient::connect(Nanoseconds patience) {
  const Instant deadline = steady_now() + patience;
  impl_->patience = patience;
  for (int refused = 0; refused < kRefusals;) {
    const Resolved at = resolve(impl_->address, "SHOAL_COORD", std::max<Nanoseconds>(deadline - steady_now(), kLookUpPause));
    impl_->tried = at.words;
    const auto knock_once = [impl = impl_, candidates = at.endpoints] { return Impl::knock_once(impl, candidates); };
    const Nanoseconds long_enough = static_cast<int>(at.endpoints.size()) * kOneCandidate;
    if (!at.endpoints.empty() && Impl::answer_of(long_enough, knock_once)) return;
    if (impl_->refusal == Answer::stale || impl_->refusal == Answer::elsewhere) break;
    refused = impl_->refusal == Answer::unproved || impl_->refusal == Answer::foreign ? refused + 1 : 0;
    if (steady_now() >= deadline) break;
    Loop::shared().drive([] { return false; }, std::min(deadline, steady_now() + kLookUpPause));
  }
  impl_->refuse();
}

CoordinatorClient::~CoordinatorClient() {
  Loop::shared().post([impl = std::move(impl_)] {});
}

void CoordinatorClient::put(const std::string& key, const std::string& value) { write(static_cast<std::uint32_t>(Op::put), key, value); }

std::string CoordinatorClient::put_first(const std::string& key, const std::string& value) {
  write(static_cast<std::uint32_t>(Op::put_first), key, value);
  return std::move(impl_->value);
}

void CoordinatorClient::write(std::uint32_t op, const std::string& key, const std::string& value) {
  if (key.empty() || key.size() > kMaxKey || value.size() > kMaxValue) {
    throw Error(Code::internal, "a key or value is too long for the coordinator", key.substr(0, 64));
  }
  exchange(op, key, value, 10s);
  if (impl_->reply.status != Status::ok) throw Error(Code::io, "the coordinator at " + impl_->address + " is full", key);
}

std::string CoordinatorClient::get(const std::string& key, Nanoseconds patience) {
  exchange(static_cast<std::uint32_t>(Op::get), key, {}, patience);
  if (impl_->reply.status != Status::ok) {
    throw Error(Code::timeout, "nobody has put " + key + " on the coordinator at " + impl_->address);
  }
  return std::move(impl_->value);
}

void CoordinatorClient::exchange(std::uint32_t op, const std::string& key, const std::string& value, Nanoseconds patience) {
  const Request request{.op = static_cast<Op>(op), .key = static_cast<std::uint32_t>(key.size()),
                        .value = static_cast<std::uint32_t>(value.size()),
                        .patience_ns = std::max<std::int64_t>(patience.count(), 0)};
  const auto head = coordination::encode(request);
  std::string bytes(reinterpret_cast<const char*>(head.data()), head.size());
  bytes += key;
  bytes += value;
  // The coordinator itself answers when the patience is over; who hears nothing even then closes the connection.
  const Nanoseconds bound = patience + 5s;
  const auto converse = [impl = impl_, bytes, bound] { return Impl::converse(impl, bytes, bound); };
  if (!Impl::answer_of(bound, converse)) impl_->fallen_silent();
  if (impl_->reply.status == Status::hopeless) {
    const auto end = impl_->value.find('\n');
    throw Error(Code::mismatch, impl_->value.substr(0, end), "join", end == std::string::npos ? "" : impl_->value.substr(end + 1));
  }
}

}  // namespace shoal::net

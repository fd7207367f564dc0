#include "shoal/net/coordinator.h"

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstring>
#include <map>
#include <set>

#include "shoal/net/call.h"
#include "shoal/net/dial.h"
#include "shoal/net/whole.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxKey = 256, kMaxValue = 64 * 1024, kMaxKeys = 64 * 1024, kMaxBytes = 64 * 1024 * 1024;
constexpr std::size_t kMaxClients = 4096;

// Request: op, key length, value length, patience; then key and value. Reply: status, value length; then value.
enum class Op : std::uint32_t { put = 1, get = 2 };
enum class Status : std::uint32_t { ok = 0, timeout = 1, full = 2 };
struct Request {
  Op op;
  std::uint32_t key = 0, value = 0;
  std::int64_t patience_ns = 0;
};
struct Reply {
  Status status = Status::ok;
  std::uint32_t value = 0;
};
constexpr std::size_t kRequestBytes = 24, kReplyBytes = 8;

std::array<std::byte, kRequestBytes> encode(const Request& r) {
  std::array<std::byte, kRequestBytes> out{};
  std::memcpy(out.data(), &r.op, 4);
  std::memcpy(out.data() + 4, &r.key, 4);
  std::memcpy(out.data() + 8, &r.value, 4);
  std::memcpy(out.data() + 16, &r.patience_ns, 8);
  return out;
}

std::optional<Request> decode(const std::array<std::byte, kRequestBytes>& in) {
  Request r{};
  std::memcpy(&r.op, in.data(), 4);
  std::memcpy(&r.key, in.data() + 4, 4);
  std::memcpy(&r.value, in.data() + 8, 4);
  std::memcpy(&r.patience_ns, in.data() + 16, 8);
  const bool known = r.op == Op::put || r.op == Op::get;
  if (!known || r.key == 0 || r.key > kMaxKey || r.value > kMaxValue || r.patience_ns < 0) return {};
  return r;
}

std::array<unsigned char, 32> coordinator_job() { return hash_of_job("shoal coordinator"); }

Endpoint endpoint_from(const std::string& text, const std::string& where) {
  const bool any_port = text.size() > 2 && text.ends_with(":0");
  const auto at = parse_endpoint(any_port ? text.substr(0, text.size() - 1) + "1" : text);
  if (!at) {
    throw Error(Code::invalid_argument, "\"" + text + "\" is not an address and a port", where, "for example 10.0.0.5:29400");
  }
  return any_port ? Endpoint(at->address(), 0) : *at;
}

}  // namespace

// --- server: one coroutine a client; a get waits on the board's changes.

struct Coordinator::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(std::shared_ptr<Door> opened) : door(std::move(opened)) {}

  void open() {
    door->open(
        [self = shared_from_this()](const Purpose& p) {
          return p.role == Role::coordinator && p.job == coordinator_job() && self->clients.size() < kMaxClients;
        },
        [self = shared_from_this()](Socket socket, const Purpose&) {
          asio::co_spawn(Loop::shared().io(), serve(self, std::move(socket)), asio::detached);
        });
  }

  void close() {
    door->close();
    for (Socket* client : clients) client->close();
    for (asio::steady_timer* waiter : waiters) waiter->cancel();
    closed = true;
  }

  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, Socket from) {
    Socket socket = std::move(from);
    const ForkGuard guard(socket.native_handle());
    self->clients.insert(&socket);
    while (!self->closed) {
      std::array<std::byte, kRequestBytes> head;
      if (!co_await read_all(socket, head)) break;
      const auto request = decode(head);
      if (!request) break;
      std::string key(request->key, '\0'), value(request->value, '\0');
      if (!co_await read_all(socket, key)) break;
      if (!co_await read_all(socket, value)) break;
      Reply reply;
      if (request->op == Op::put) {
        reply.status = self->put(key, std::move(value)) ? Status::ok : Status::full;
        value.clear();
      } else {
        const bool found = co_await self->wait_for(key, Nanoseconds(request->patience_ns));
        reply.status = found ? Status::ok : Status::timeout;
        value = found ? self->board[key] : std::string();
      }
      reply.value = static_cast<std::uint32_t>(value.size());
      std::string out(kReplyBytes, '\0');
      std::memcpy(out.data(), &reply.status, 4);
      std::memcpy(out.data() + 4, &reply.value, 4);
      out += value;
      if (!co_await write_all(socket, out)) break;
    }
    self->clients.erase(&socket);
  }

  bool put(const std::string& key, std::string value) {
    const std::size_t before = board.contains(key) ? board[key].size() : 0;
    const std::size_t after = bytes - before + value.size();
    if ((before == 0 && board.size() >= kMaxKeys) || after > kMaxBytes) return false;
    bytes = after;
    board[key] = std::move(value);
    for (asio::steady_timer* waiter : waiters) waiter->cancel();
    return true;
  }

  asio::awaitable<bool> wait_for(std::string key, Nanoseconds patience) {
    const Instant deadline = steady_now() + std::min<Nanoseconds>(patience, 24h);
    while (!board.contains(key) && steady_now() < deadline && !closed) {
      asio::steady_timer timer(Loop::shared().io(), std::chrono::time_point_cast<asio::steady_timer::duration>(deadline));
      waiters.insert(&timer);
      std::error_code ignored;
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      waiters.erase(&timer);
    }
    co_return board.contains(key);
  }

  std::shared_ptr<Door> door;
  std::map<std::string, std::string> board;
  std::size_t bytes = 0;
  std::set<Socket*> clients;                 // in serve()'s frames
  std::set<asio::steady_timer*> waiters;     // in wait_for()'s frames
  bool closed = false;
};

Coordinator::Coordinator(const std::string& secret, const std::string& bind) {
  const Endpoint at = endpoint_from(bind, "coordinator");
  if (secret.empty() && !at.address().is_loopback()) {
    throw Error(Code::invalid_argument, "a coordinator at " + show(at) + " can be reached from other hosts and needs a secret",
                "SHOAL_SECRET", "set SHOAL_SECRET, or bind to 127.0.0.1");
  }
  impl_ = std::make_shared<Impl>(std::make_shared<Door>(at, derive_key(secret)));
  Loop::shared().post([impl = impl_] { impl->open(); });
}

Coordinator::Coordinator(const std::string& secret, int listening_fd)
    : impl_(std::make_shared<Impl>(std::make_shared<Door>(listening_fd, derive_key(secret)))) {
  Loop::shared().post([impl = impl_] { impl->open(); });
}

Coordinator::~Coordinator() {
  call(Loop::shared(), [impl = std::move(impl_)] { impl->close(); });
}

std::string Coordinator::address() const { return show(impl_->door->endpoint()); }
std::uint64_t Coordinator::strangers() const { return impl_->door->strangers(); }

// --- client

struct CoordinatorClient::Impl {
  std::string address;
  Key key;
  std::optional<Socket> socket;
  ForkGuard guard;
  Reply reply;
  std::string value;

  static asio::awaitable<bool> connect(std::shared_ptr<Impl> self, Endpoint to, Instant deadline) {
    Purpose purpose;
    purpose.role = Role::coordinator;
    purpose.job = coordinator_job();
    const std::vector<Endpoint> candidates(1, to);
    const std::function<bool()> wanted = [] { return true; };
    self->socket = co_await dial(candidates, self->key, purpose, deadline, wanted);
    if (self->socket) self->guard = ForkGuard(self->socket->native_handle());
    co_return self->socket.has_value();
  }

  static asio::awaitable<bool> converse(std::shared_ptr<Impl> self, std::string request, Nanoseconds patience) {
    const Deadline deadline(*self->socket, patience);
    std::array<std::byte, kReplyBytes> head;
    if (!co_await write_all(*self->socket, request)) co_return false;
    if (!co_await read_all(*self->socket, head)) co_return false;
    std::memcpy(&self->reply.status, head.data(), 4);
    std::memcpy(&self->reply.value, head.data() + 4, 4);
    if (self->reply.value > kMaxValue) co_return false;
    self->value.resize(self->reply.value);
    co_return co_await read_all(*self->socket, self->value);
  }

  // Runs begin()'s coroutine and waits for its answer; false if there is none within the patience.
  template <class Begin>
  static bool answer_of(Nanoseconds patience, Begin begin) {
    const auto answer = ask<bool>(Loop::shared(), patience + kLoopAnswers, [begin = std::move(begin)](const auto& tell) {
      asio::co_spawn(Loop::shared().io(), begin(), [tell](const std::exception_ptr& failed, bool answered) {
        tell(!failed && answered);
        Loop::shared().progress();
      });
    });
    return answer.value_or(false);
  }
};

CoordinatorClient::CoordinatorClient(const std::string& secret, const std::string& address, Nanoseconds patience)
    : impl_(std::make_shared<Impl>()) {
  impl_->address = address;
  impl_->key = derive_key(secret);
  const Endpoint to = endpoint_from(address, "SHOAL_COORD");
  const auto connect = [impl = impl_, to, patience] { return Impl::connect(impl, to, steady_now() + patience); };
  if (!Impl::answer_of(patience, connect)) {
    throw Error(Code::io, "no coordinator of this job answers at " + address, "SHOAL_COORD",
                "check the address and that SHOAL_SECRET is the same there");
  }
}

CoordinatorClient::~CoordinatorClient() {
  Loop::shared().post([impl = std::move(impl_)] {});
}

void CoordinatorClient::put(const std::string& key, const std::string& value) {
  if (key.empty() || key.size() > kMaxKey || value.size() > kMaxValue) {
    throw Error(Code::internal, "a key or value is too long for the coordinator", key.substr(0, 64));
  }
  exchange(static_cast<std::uint32_t>(Op::put), key, value, 10s);
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
  const auto head = encode(request);
  std::string bytes(reinterpret_cast<const char*>(head.data()), head.size());
  bytes += key;
  bytes += value;
  // The coordinator itself answers when the patience is over; who hears nothing even then closes the connection.
  const Nanoseconds bound = patience + 5s;
  const auto converse = [impl = impl_, bytes, bound] { return Impl::converse(impl, bytes, bound); };
  if (!Impl::answer_of(bound, converse)) throw Error(Code::io, "the coordinator at " + impl_->address + " does not answer any more");
}

}  // namespace shoal::net

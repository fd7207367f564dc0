#include "shoal/net/coordinator.h"

#include <sys/socket.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <set>

#include "shoal/net/call.h"
#include "shoal/net/again.h"
#include "shoal/net/coordinator_wire.h"
#include "shoal/net/dial.h"
#include "shoal/net/reach.h"
#include "shoal/net/spawn.h"
#include "shoal/net/whole.h"

namespace shoal::net {

using namespace std::chrono_literals;
using coordination::kRequestBytes;
using coordination::Op, coordination::Reply, coordination::Status;

namespace {

constexpr std::size_t kMaxKeys = 64 * 1024, kMaxBytes = 64 * 1024 * 1024;
constexpr std::size_t kMaxClients = 4096, kMaxClaims = 256;
// A member that did not prove the secret may be a stranger who says that it is one, or of another job: the one that belongs
// here has so long to come.
constexpr Nanoseconds kClaimStands = 3s;
constexpr Nanoseconds kFarewell = 2s;  // for members to read why they wait no longer

bool still_there(Socket& socket) {
  char byte = 0;
  const ssize_t got = recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

}  // namespace

// One coroutine a client; a get waits on the board's changes.
struct Coordinator::Impl : std::enable_shared_from_this<Impl> {
  struct Client {
    Rank rank = kNobody;
    std::uint32_t generation = 0;
    std::string from;
  };
  // Why the members will not be complete and, after a line break, what to do.
  struct Verdict {  // certain
    Rank rank;      // at which it lies; kNobody: at all
    std::string why;
  };
  struct Claim {  // of somebody refused, who said that it is a member: believed from `due` on
    Instant due;
    std::string why;
  };

  Impl(std::shared_ptr<Door> opened, const std::string& job, Rank members)
      : door(std::move(opened)), purpose(coordination::purpose_of(job)), size(members) {
    if (size != kAnySize) put(kFirstKey, std::to_string(size));
  }

  void open() {
    door->open([self = shared_from_this()](const Purpose& p) { return self->welcome(p); },
               [self = shared_from_this()](Socket socket, const Purpose& p) { spawn(serve(self, std::move(socket), p)); },
               [self = shared_from_this()](const Purpose& p, const Endpoint& from) { self->refused(p, from); });
  }

  void close() {
    door->close();
    for (auto& [client, about] : clients) client->close();
    closed = true;
    wake();
  }

  void wake() {
    for (asio::steady_timer* waiter : waiters) waiter->cancel();
  }

  // --- who comes

  Answer welcome(const Purpose& p) {
    if (p.role != Role::coordinator || clients.size() >= kMaxClients) return Answer::busy;
    if (p.job != purpose) return Answer::elsewhere;
    if (p.from == kNobody) return Answer::welcome;
    return p.to < generation ? Answer::stale : Answer::welcome;
  }

  const Client* holder_of(const Purpose& p) {
    for (auto& [socket, client] : clients) {
      if (client.rank == p.from && client.generation == p.to && still_there(*socket)) return &client;
    }
    return nullptr;
  }

  void begin(const Purpose& p) {
    claims.erase(p.from);
    if (verdict && verdict->rank == p.from) verdict.reset();
    if (p.to <= generation) return;
    generation = p.to;  // whoever waits in an earlier one is told
    claims.clear();
    if (verdict && verdict->rank != kNobody) verdict.reset();  // what is given up as a whole is so for those who come late, too
    wake();
  }

  // Two members prove one rank: nobody can know which of them is right.
  void given_twice(const Purpose& p, const std::string& first, const std::string& second) {
    conclude(p.from, "rank " + std::to_string(p.from) + " was given twice: to a member at " + first + " and to one at " + second +
                         "\ngive every member a rank of its own");
  }
  void refused(const Purpose& p, const Endpoint& from) {
    if (p.role != Role::coordinator || p.from == kNobody || p.job != purpose || p.to != generation) return;
    if (p.from >= size || holder_of(p) || claims.size() >= kMaxClaims) return;
    claims.try_emplace(p.from, Claim{steady_now() + kClaimStands, "rank " + std::to_string(p.from) + " at " + from.address().to_string() +
                                                                      " was refused: it does not prove the secret of this job\n" +
                                                                      kOneSecret});
    wake();
  }
  void conclude(Rank rank, std::string why) {
    if (!verdict) verdict = Verdict{rank, std::move(why)};
    wake();
  }

  // --- what they ask

  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, Socket from, Purpose purpose) {
    Socket socket = std::move(from);
    const ForkGuard guard(socket.native_handle());
    const std::string address = other_end(socket).address().to_string();
    if (purpose.from != kNobody) {
      const Client* const first = self->holder_of(purpose);
      first ? self->given_twice(purpose, first->from, address) : self->begin(purpose);
    }
    const Client client{purpose.from, purpose.to, address};
    self->clients.emplace(&socket, client);
    while (!self->closed) {
      std::array<std::byte, kRequestBytes> head;
      if (!co_await read_all(socket, head)) break;
      const auto request = coordination::decode_request(head);
      if (!request) break;
      std::string key(request->key, '\0'), value(request->value, '\0');
      if (!co_await read_all(socket, key)) break;
      if (!co_await read_all(socket, value)) break;
      Reply reply;
      if (const std::string why = self->hopeless(client); !why.empty()) {
        reply.status = Status::hopeless;
        value = why;
      } else if (request->op == Op::put) {
        reply.status = self->put(key, std::move(value)) ? Status::ok : Status::full;
        value.clear();
      } else if (request->op == Op::put_first) {
        const auto there = self->board.find(key);
        if (there == self->board.end()) reply.status = self->put(key, value) ? Status::ok : Status::full;
        else value = there->second;
      } else {
        value = co_await self->wait_for(key, Nanoseconds(request->patience_ns), client, reply.status);
      }
      reply.value = static_cast<std::uint32_t>(value.size());
      const auto opening = coordination::encode(reply);
      if (!co_await write_all(socket, std::string(reinterpret_cast<const char*>(opening.data()), opening.size()) + value)) break;
    }
    self->clients.erase(&socket);
  }

  bool put(const std::string& key, std::string value) {
    const std::size_t before = board.contains(key) ? board[key].size() : 0;
    const std::size_t after = bytes - before + value.size();
    if ((before == 0 && board.size() >= kMaxKeys) || after > kMaxBytes) return false;
    bytes = after;
    board[key] = std::move(value);
    wake();
    return true;
  }

  // What is under the key, or why it will not come.
  asio::awaitable<std::string> wait_for(std::string key, Nanoseconds patience, Client client, Status& status) {
    const Instant deadline = steady_now() + std::min<Nanoseconds>(patience, 24h);
    while (!closed) {
      const auto found = board.find(key);
      if (found != board.end()) {
        status = Status::ok;
        co_return found->second;
      }
      if (const std::string why = hopeless(client); !why.empty()) {
        status = Status::hopeless;
        co_return why;
      }
      if (steady_now() >= deadline) break;
      Instant until = deadline;
      for (const auto& [rank, claim] : claims) until = std::min(until, claim.due);
      asio::steady_timer timer(Loop::shared().io(), std::chrono::time_point_cast<asio::steady_timer::duration>(until));
      waiters.insert(&timer);
      std::error_code ignored;
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      waiters.erase(&timer);
    }
    status = Status::timeout;
    co_return "";
  }

  // Why this member waits in vain; empty if it does not, as far as anybody knows.
  std::string hopeless(const Client& client) const {
    if (client.rank == kNobody) return "";
    if (client.generation < generation) {
      return "generation " + std::to_string(client.generation) + " of this run is over: generation " + std::to_string(generation) +
             " has begun\nend this process; its launcher has started another in its place";
    }
    if (verdict) return verdict->why;
    for (const auto& [rank, claim] : claims) {
      if (claim.due <= steady_now()) return claim.why;
    }
    return "";
  }

  std::shared_ptr<Door> door;
  const std::array<unsigned char, 32> purpose;
  const Rank size;
  std::map<std::string, std::string> board;
  std::size_t bytes = 0;
  std::uint32_t generation = 0;              // the latest that a member came from
  std::optional<Verdict> verdict;            // of this generation, the first
  std::map<Rank, Claim> claims;              // of this generation, by the rank claimed
  std::map<Socket*, Client> clients;         // in serve()'s frames
  std::set<asio::steady_timer*> waiters;     // in wait_for()'s frames
  bool closed = false;
};

Coordinator::Coordinator(const std::string& secret, const std::string& bind, const std::string& job, Rank size) {
  const bool any_port = bind.size() > 2 && bind.ends_with(":0");
  auto at = parse_endpoint(any_port ? bind.substr(0, bind.size() - 1) + "1" : bind);
  if (!at) {
    throw Error(Code::invalid_argument, "\"" + bind + "\" is not an address and a port", "coordinator", "for example 10.0.0.5:29400");
  }
  if (any_port) at->port(0);
  if (secret.empty() && !at->address().is_loopback()) {
    throw Error(Code::invalid_argument, "a coordinator at " + show(*at) + " can be reached from other hosts and needs a secret",
                "SHOAL_SECRET", "set SHOAL_SECRET, or bind to 127.0.0.1");
  }
  impl_ = std::make_shared<Impl>(std::make_shared<Door>(*at, derive_key(secret)), job, size);
  Loop::shared().post([impl = impl_] { impl->open(); });
}

Coordinator::Coordinator(const std::string& secret, int listening_fd, const std::string& job, Rank size)
    : Coordinator(std::make_shared<Door>(listening_fd, derive_key(secret)), job, size) {}

Coordinator::Coordinator(std::shared_ptr<Door> door, const std::string& job, Rank size)
    : impl_(std::make_shared<Impl>(std::move(door), job, size)) {
  Loop::shared().post([impl = impl_] { impl->open(); });
}

Coordinator::Coordinator(const std::string& secret, const JoinOptions& where, const std::string& job, Rank size)
    : Coordinator(make_door(secret, where, where.ports, local_addresses(where.interface)), job, size) {}

Coordinator::~Coordinator() {
  call(Loop::shared(), [impl = std::move(impl_)] { impl->close(); });
}

std::string Coordinator::address() const { return show(impl_->door->endpoint()); }
std::string Coordinator::addresses() const {
  std::string all;
  for (const Endpoint& at : reachable_at(impl_->door->endpoint(), local_addresses({}))) {
    if (!at.address().is_loopback()) all += (all.empty() ? "" : ",") + show(at);
  }
  return all.empty() ? address() : all;
}
std::uint64_t Coordinator::strangers() const { return impl_->door->strangers(); }

void Coordinator::put(const std::string& key, const std::string& value) {
  const auto taken = call(Loop::shared(), [impl = impl_, key, value] { return impl->put(key, value); });
  if (!taken.value_or(false)) throw Error(Code::internal, "the coordinator is full", key);
}

bool Coordinator::put_where(const std::string& key, const std::string& value, const std::string& other, const std::string& is) {
  return call(Loop::shared(), [impl = impl_, key, value, other, is] {
    const auto found = impl->board.find(other);
    return found != impl->board.end() && found->second == is && impl->put(key, value);
  }).value_or(false);
}

std::optional<std::string> Coordinator::find(const std::string& key) const {
  return call(Loop::shared(), [impl = impl_, key] {
    const auto found = impl->board.find(key);
    return found == impl->board.end() ? std::nullopt : std::optional(found->second);
  }).value_or(std::nullopt);
}

void Coordinator::give_up(const Error& why) {
  const std::string line = (why.where().empty() || why.where() == "join" ? "" : why.where() + ": ") + why.fact() + "\n" + why.hint();
  call(Loop::shared(), [impl = impl_, line] { impl->conclude(kNobody, line); });
  const auto all_gone = [&] { return call(Loop::shared(), [impl = impl_] { return impl->clients.empty(); }).value_or(true); };
  for (const Instant until = steady_now() + kFarewell; !all_gone() && steady_now() < until;) {
    Loop::shared().drive([] { return false; }, steady_now() + 10ms);
  }
}

}  // namespace shoal::net

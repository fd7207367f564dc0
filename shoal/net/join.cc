// Joining: publish where this member can be reached, learn the same of the others, connect every pair, check that
// all run the same thing. The higher rank dials the lower one.
#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <cstdlib>
#include <sstream>

#include "shoal/core/random.h"
#include "shoal/core/text.h"
#include "shoal/net/call.h"
#include "shoal/net/dial.h"
#include "shoal/net/tcp.h"
#include "shoal/net/tcp_transport.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kConnectAtLeast = 10s;
constexpr std::size_t kMaxCandidates = 32, kMaxSettings = 32;

// What a member puts on the board: one "key value" a line.
struct Card {
  MemberInfo info;
  Rank size = 0;
  bool secret = false;
  std::map<std::string, std::string> settings;
  std::vector<Endpoint> candidates;
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string write_card(const Card& card) {
  std::ostringstream out;
  out << "id " << card.info.id << "\nhost " << one_line(card.info.host) << "\nboot " << card.info.boot << "\npid "
      << card.info.pid << "\nsize " << card.size << "\nsecret " << card.secret << "\n";
  for (const auto& [name, value] : card.settings) out << "setting " << one_line(name) << "=" << one_line(value) << "\n";
  for (const Endpoint& at : card.candidates) out << "at " << show(at) << "\n";
  return out.str();
}

Card read_card(const std::string& text) {
  Card card;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto space = line.find(' ');
    const std::string key = line.substr(0, space);
    const std::string value = space == std::string::npos ? std::string() : line.substr(space + 1);
    if (key == "id") card.info.id = value;
    if (key == "host") card.info.host = value;
    if (key == "boot") card.info.boot = value;
    if (key == "pid") card.info.pid = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "size") card.size = static_cast<Rank>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "secret") card.secret = value == "1";
    const auto equals = value.find('=');
    if (key == "setting" && equals != std::string::npos && card.settings.size() < kMaxSettings) {
      card.settings.emplace(value.substr(0, equals), value.substr(equals + 1));
    }
    const auto at = key == "at" ? parse_endpoint(value) : std::nullopt;
    if (at && card.candidates.size() < kMaxCandidates) card.candidates.push_back(*at);
  }
  return card;
}

bool same_subnet(const asio::ip::address& other, const LocalAddress& mine) {
  if (other.is_v4() != mine.address.is_v4()) return false;
  const auto compare = [&](const auto& a, const auto& b) {
    for (unsigned bit = 0; bit < mine.prefix_length; ++bit) {
      if ((a[bit / 8] ^ b[bit / 8]) & (0x80 >> bit % 8)) return false;
    }
    return true;
  };
  if (other.is_v4()) return compare(other.to_v4().to_bytes(), mine.address.to_v4().to_bytes());
  return compare(other.to_v6().to_bytes(), mine.address.to_v6().to_bytes());
}

// The likeliest first: on one host the loopback, then addresses of a network this member is on.
std::vector<Endpoint> in_order(const Card& peer, const Card& self, const std::vector<LocalAddress>& mine) {
  std::vector<Endpoint> order = peer.candidates;
  const auto cost = [&](const Endpoint& at) {
    if (at.address().is_loopback()) return 0;
    return std::any_of(mine.begin(), mine.end(), [&](const LocalAddress& own) { return same_subnet(at.address(), own); }) ? 1 : 2;
  };
  if (peer.info.boot != self.info.boot) {
    std::erase_if(order, [](const Endpoint& at) { return at.address().is_loopback(); });
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
  return order;
}

class TcpJob final : public Job {
 public:
  TcpJob(const Place& place, std::vector<MemberInfo> members, std::shared_ptr<TcpTransport> transport, std::shared_ptr<Door> door)
      : place_(place), members_(std::move(members)), transport_(std::move(transport)), door_(std::move(door)), owner_(getpid()) {}
  ~TcpJob() override {
    if (getpid() != owner_) {
      abandon();  // a forked child: its copy of the loop does not run
      return;
    }
    // leave() is bounded itself.
    ask<bool>(*transport_, kLoopAnswers, [give_up = give_up_, door = door_, transport = transport_](const auto& tell) {
      if (give_up) give_up();
      if (door) door->close();
      transport->leave([tell] { tell(true); });
    });
  }
  void while_connecting(std::function<void()> give_up) { give_up_ = std::move(give_up); }
  void connected(std::vector<MemberInfo> members) { members_ = std::move(members); }

  const Place& place() const override { return place_; }
  const std::vector<MemberInfo>& members() const override { return members_; }
  Transport& transport() override { return *transport_; }

 private:
  void abandon() {
    static_cast<void>(new std::shared_ptr<TcpTransport>(std::move(transport_)));
    static_cast<void>(new std::shared_ptr<Door>(std::move(door_)));
  }
  Place place_;
  std::vector<MemberInfo> members_;
  std::shared_ptr<TcpTransport> transport_;
  std::shared_ptr<Door> door_;
  std::function<void()> give_up_;   // stops the search for peers
  pid_t owner_;
};

// The first setting, by name, that is not the same on both sides.
void check_settings(const Card& other, const std::string& them, const Card& mine, const std::string& us) {
  const auto said = [](const Card& card, const std::string& name) {
    const auto found = card.settings.find(name);
    return found == card.settings.end() ? "no " + name : name + " " + found->second;
  };
  std::map<std::string, std::string> both = mine.settings;
  both.insert(other.settings.begin(), other.settings.end());
  for (const auto& [name, value] : both) {
    if (said(other, name) == said(mine, name)) continue;
    throw Error(Code::mismatch, them + " has " + said(other, name) + ", " + us + " has " + said(mine, name), "join",
                "it must be the same on all members");
  }
}

void check_equal(const Card& other, Rank rank, const Card& mine, Rank self) {
  const std::string them = "rank " + std::to_string(rank) + " (" + other.info.host + ")";
  const std::string us = "rank " + std::to_string(self) + " (" + mine.info.host + ")";
  if (other.size != mine.size) {
    throw Error(Code::mismatch, them + " was started with size " + std::to_string(other.size) + ", " + us + " with " +
                std::to_string(mine.size), "join", "start all members with the same size");
  }
  check_settings(other, them, mine, us);
  if (other.info.boot != mine.info.boot && !(other.secret && mine.secret)) {
    throw Error(Code::invalid_argument, "members are on different hosts (" + mine.info.host + ", " + other.info.host +
                ") but the job has no secret", "SHOAL_SECRET", "set SHOAL_SECRET, or SHOAL_SECRET_FILE, to the same on all hosts");
  }
}

// Every member's card, each checked against `mine` as it comes; throws timeout naming all that are missing.
std::vector<Card> gather(const Place& place, const Card& mine, Rendezvous& board, const std::string& prefix, Nanoseconds patience,
                         Instant deadline) {
  std::vector<Card> cards(place.size);
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < place.size; ++rank) {
    try {
      cards[rank] = read_card(board.get(prefix + std::to_string(rank), std::max<Nanoseconds>(deadline - steady_now(), 1ms)));
    } catch (const Error& error) {
      if (error.code() != Code::timeout) throw;
      missing.push_back(rank);
      continue;
    }
    check_equal(cards[rank], rank, mine, place.rank);
  }
  if (missing.empty()) return cards;
  throw Error(Code::timeout, show_ranks(missing) + " of " + std::to_string(place.size) + " did not appear within " +
              show_seconds(Seconds(patience).count()),
              "join", "start every member, or look at the log of those");
}

// The part of joining that runs on the loop: lets higher ranks in, dials lower ones.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  Connecting(const Place& place, std::shared_ptr<TcpTransport> transport, std::shared_ptr<Door> door, const Key& key,
             const std::string& scope)
      : transport_(std::move(transport)), door_(std::move(door)), key_(key), used_(place.size) {
    purpose_.from = place.rank;
    purpose_.job = hash_of_job(place.job + '\n' + std::to_string(place.generation) + '\n' + scope + '\n' +
                               std::to_string(place.size));
  }

  // The transport's heartbeats begin with the first connection: a member that is complete must not take others, who still
  // look for each other, for dead.
  void open_door() {
    transport_->begin();
    door_->open([self = shared_from_this()](const Purpose& p) { return self->welcome(p); },
                [self = shared_from_this()](Socket socket, const Purpose& p) {
                  if (self->welcome(p)) self->connected(p.from, channel_of(p.role), std::move(socket));
                });
  }
  void dial_lower(const std::vector<std::vector<Endpoint>>& candidates, Instant deadline) {
    for (Rank peer = 0; peer < purpose_.from; ++peer) {
      asio::co_spawn(Loop::shared().io(), connect_to(shared_from_this(), peer, candidates[peer], deadline), asio::detached);
    }
  }
  void give_up() { wanted_ = false; }
  bool complete() const { return complete_; }         // any thread; also after a failure
  const Endpoint& used(Rank peer) const { return used_[peer]; }

 private:
  static wire::Channel channel_of(Role role) { return role == Role::bulk ? wire::Channel::bulk : wire::Channel::control; }
  bool welcome(const Purpose& p) const {
    return wanted_ && p.role != Role::coordinator && p.to == purpose_.from && p.from > p.to && p.job == purpose_.job &&
           transport_->wants(p.from, channel_of(p.role));
  }
  void connected(Rank peer, wire::Channel channel, Socket socket) {
    used_[peer] = other_end(socket);
    transport_->adopt(peer, channel, std::move(socket));
    complete_ = transport_->connected();
    Loop::shared().progress();
  }
  static asio::awaitable<void> connect_to(std::shared_ptr<Connecting> self, Rank peer, std::vector<Endpoint> candidates, Instant deadline) {
    for (const Role role : {Role::control, Role::bulk}) {
      Purpose purpose = self->purpose_;
      purpose.role = role;
      purpose.to = peer;
      const std::function<bool()> wanted = [self] { return self->wanted_; };
      std::optional<Socket> socket = co_await dial(candidates, self->key_, purpose, deadline, wanted);
      if (!socket || !self->wanted_ || !self->transport_->wants(peer, channel_of(role))) co_return;
      self->connected(peer, channel_of(role), std::move(*socket));
      candidates = {self->used_[peer]};
    }
  }

  std::shared_ptr<TcpTransport> transport_;
  std::shared_ptr<Door> door_;
  const Key key_;
  Purpose purpose_;
  std::vector<Endpoint> used_;       // by rank
  bool wanted_ = true;
  std::atomic<bool> complete_{false};
};

// Where this member can be reached: everywhere (or on the chosen interface) with a secret, else on the loopback only.
std::shared_ptr<Door> make_door(const std::string& secret, const Key& key, const JoinOptions& options,
                                const std::vector<LocalAddress>& addresses) {
  if (secret.empty()) return std::make_shared<Door>(Endpoint(asio::ip::address_v4::loopback(), 0), key);
  if (!options.interface.empty()) return std::make_shared<Door>(Endpoint(addresses.front().address, 0), key);
  try {
    return std::make_shared<Door>(Endpoint(asio::ip::address_v6::any(), 0), key);
  } catch (const Error&) {  // a machine without IPv6
    return std::make_shared<Door>(Endpoint(asio::ip::address_v4::any(), 0), key);
  }
}

std::vector<Endpoint> reachable_at(const Endpoint& bound, const std::vector<LocalAddress>& addresses) {
  if (!bound.address().is_unspecified()) return {bound};
  std::vector<Endpoint> all = {{asio::ip::address_v4::loopback(), bound.port()}};
  if (bound.address().is_v6()) all.emplace_back(asio::ip::address_v6::loopback(), bound.port());
  for (const LocalAddress& at : addresses) {
    const bool listened = at.address.is_v4() || bound.address().is_v6();
    if (listened && !at.address.is_loopback()) all.emplace_back(at.address, bound.port());
  }
  return all;
}

// Of all that a member advertises: one that other hosts see, if there is one.
const Endpoint& for_people(const Card& card) {
  const auto seen = std::find_if(card.candidates.begin(), card.candidates.end(), [](const Endpoint& at) { return !at.address().is_loopback(); });
  return seen == card.candidates.end() ? card.candidates.front() : *seen;
}

std::string list_unconnected(const Place& place, const TcpTransport& transport, const std::vector<Card>& cards) {
  std::string who;
  for (Rank rank = 0; rank < place.size; ++rank) {
    if (!transport.wants(rank, wire::Channel::control) && !transport.wants(rank, wire::Channel::bulk)) continue;
    who += (who.empty() ? "" : "; ") + ("rank " + std::to_string(rank)) + " (" + cards[rank].info.host + ")";
    if (rank < place.rank) {
      for (const Endpoint& at : cards[rank].candidates) who += " " + show(at);
    }
  }
  return who;
}

}  // namespace

std::unique_ptr<Job> join_tcp(const Place& place, Rendezvous& rendezvous, const std::string& scope, const std::string& secret,
                              const JoinOptions& options) {
  // Whoever drops the last reference, the transport ends on the loop, where its parts live.
  const std::shared_ptr<TcpTransport> transport(new TcpTransport(place.rank, place.size, options), [](TcpTransport* ended) {
    Loop::shared().post([ended] { delete ended; });
  });
  Card mine;
  mine.info = {.id = random_hex(8), .host = host_name(), .boot = boot_identity(), .address = {},
               .pid = static_cast<std::uint32_t>(getpid())};
  if (place.size == 1) {
    transport->name_hosts({mine.info.host});
    return std::make_unique<TcpJob>(place, std::vector{mine.info}, transport, nullptr);
  }
  const auto addresses = local_addresses(options.interface);
  const Key key = derive_key(secret);
  const Instant deadline = steady_now() + options.patience;
  auto door = make_door(secret, key, options, addresses);
  auto connecting = std::make_shared<Connecting>(place, transport, door, key, scope);
  auto job = std::make_unique<TcpJob>(place, std::vector<MemberInfo>(place.size), transport, door);
  job->while_connecting([connecting] { connecting->give_up(); });
  mine.size = place.size;
  mine.secret = !secret.empty();
  mine.settings = options.settings;
  mine.settings["Shoal"] = SHOAL_VERSION;
  mine.candidates = reachable_at(door->endpoint(), addresses);

  Loop::shared().post([connecting] { connecting->open_door(); });
  rendezvous.put(scope + "member/" + std::to_string(place.rank), write_card(mine));
  const std::vector<Card> cards = gather(place, mine, rendezvous, scope + "member/", options.patience, deadline);
  const Instant connected_by = std::max(deadline, steady_now() + kConnectAtLeast);  // also if the last one came late

  std::vector<std::string> hosts;
  std::vector<std::vector<Endpoint>> candidates;
  for (Rank rank = 0; rank < place.size; ++rank) {
    hosts.push_back(cards[rank].info.host);
    candidates.push_back(in_order(cards[rank], mine, addresses));
    if (candidates.back().empty()) {
      throw Error(Code::invalid_argument, "rank " + std::to_string(rank) + " (" + hosts.back() + ") has no address that " + mine.info.host +
                  " could reach", "join", "see `ip address` there: an interface must be up, with an address that is not link-local");
    }
  }
  Loop::shared().post([transport, connecting, connected_by, hosts = std::move(hosts), candidates = std::move(candidates)] {
    transport->name_hosts(hosts);
    connecting->dial_lower(candidates, connected_by);
  });
  Loop::shared().drive([&] { return connecting->complete() || transport->failure(); }, connected_by);
  const auto joined = call(Loop::shared(), [place, transport, connecting, cards] {
    return connecting->complete() ? std::string() : list_unconnected(place, *transport, cards);
  });
  if (!joined) throw Error(Code::internal, "the network's loop does not answer", "join");
  if (const Failure failure = transport->failure()) throw Error(*failure);
  if (!joined->empty()) {
    throw Error(Code::timeout, "no connection with " + *joined, "join", "check the network between these hosts");
  }
  std::vector<MemberInfo> members;
  for (Rank rank = 0; rank < place.size; ++rank) {
    members.push_back(cards[rank].info);
    const Endpoint listening(connecting->used(rank).address(), cards[rank].candidates.front().port());
    members[rank].address = show(rank == place.rank ? for_people(mine) : listening);
  }
  job->connected(std::move(members));
  return job;
}

std::unique_ptr<Job> join(const Place& place, Rendezvous& rendezvous, const JoinOptions& options) {
  JoinOptions chosen = options;
  if (const char* interface = std::getenv("SHOAL_INTERFACE"); interface && chosen.interface.empty()) chosen.interface = interface;
  return join_tcp(place, rendezvous, "shoal/" + std::to_string(place.generation) + "/", find_secret().value_or(""), chosen);
}

}  // namespace shoal::net

// Joining: publish where this member can be reached, learn the same of the others, connect every pair, check that
// all run the same thing. The higher rank dials the lower one.
#include <algorithm>

#include "shoal/core/host.h"
#include "shoal/core/random.h"
#include "shoal/core/text.h"
#include "shoal/net/call.h"
#include "shoal/net/card.h"
#include "shoal/net/connecting.h"
#include "shoal/net/meet.h"
#include "shoal/net/reach.h"
#include "shoal/net/tcp.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kConnectAtLeast = 10s;

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

// Every member's card, each checked against `mine` as it comes; throws peer_lost naming all that are missing.
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
  throw Error(Code::peer_lost, show_ranks(missing) + " of " + std::to_string(place.size) + " did not appear within " +
              show_seconds(Seconds(patience).count()),
              "join", "start every member, or look at the log of those");
}

// Whose memory this member can share: both say so, and are on one host.
std::vector<Rank> find_neighbours(const std::vector<Card>& cards, const Card& mine, Rank self) {
  std::vector<Rank> neighbours;
  for (Rank rank = 0; rank < cards.size(); ++rank) {
    if (rank != self && mine.shares && cards[rank].shares && cards[rank].info.boot == mine.info.boot) neighbours.push_back(rank);
  }
  return neighbours;
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

// The same on all members, who have the same cards and settings.
void check_roles(const std::vector<MemberInfo>& members, const JoinOptions& options) {
  if (workers_among(members) == members.size()) return;
  if (!options.takes_servers) {
    throw Error(Code::unsupported, "this program has nothing to do for members that only serve", "SHOAL_ROLE",
                "start all as workers; servers are for scripts with shoal.data_parallel() or shoal.Table");
  }
  if (options.on_peer_lost == OnPeerLost::fail) return;
  throw Error(Code::unsupported, "where members only serve a run ends with the first that is lost", "SHOAL_ON_PEER_LOST", "run with --on-peer-lost fail");
}

}  // namespace

Rank workers_among(const std::vector<MemberInfo>& members) {
  const auto serves = [](const MemberInfo& member) { return member.serves; };
  const auto first = std::ranges::find_if(members, serves);
  const auto late = std::ranges::find_if_not(first, members.end(), serves);
  const auto rank = [&](auto member) { return std::to_string(member - members.begin()); };
  if (first == members.begin() && !members.empty() && late == members.end()) {
    throw Error(Code::invalid_argument, "all " + std::to_string(members.size()) + " members are servers, and nobody trains", "SHOAL_ROLE",
                "set it for the last ones alone");
  }
  if (late == members.end()) return static_cast<Rank>(first - members.begin());
  throw Error(Code::invalid_argument, "rank " + rank(first) + " is a server, and rank " + rank(late) + " behind it a worker", "SHOAL_ROLE",
              "servers are the last ranks");
}

Card card_of(const Place& place, const std::string& secret, const JoinOptions& options) {
  Card card;
  card.info = {.id = random_hex(8), .host = host_name(), .boot = boot_identity(), .address = {},
               .pid = static_cast<std::uint32_t>(getpid()), .serves = *options.serves};
  card.size = place.size;
  card.secret = fingerprint_of(secret);
  card.settings = options.settings;
  card.settings["Shoal"] = SHOAL_VERSION;
  card.settings["on_peer_lost"] = name(*options.on_peer_lost);
  card.shares = *options.shared_memory;
  return card;
}

void require_launcher_for(const JoinOptions& options, const Place& place) {
  if (!options.on_peer_lost || !replaces_lost(*options.on_peer_lost) || place.launcher == Place::Launcher::shoal || place.size == 1) return;
  throw Error(Code::unsupported, "only `shoal run` starts others in place of lost members, and these were started by " + std::string(name(place.launcher)),
              "SHOAL_ON_PEER_LOST", "start with `shoal run`, or by hand with `shoal meet`, or set shrink");
}

std::unique_ptr<Job> join_tcp(const Place& place, Rendezvous& rendezvous, const std::string& scope, const std::string& secret,
                              const JoinOptions& given) {
  const JoinOptions options = with_environment(given);
  const bool rejoins = replaces_lost(*options.on_peer_lost);
  if (rejoins && !options.takes_over) {
    throw Error(Code::unsupported, "nobody can come back into what this program does", "SHOAL_ON_PEER_LOST", "run with --on-peer-lost fail or shrink");
  }
  require_launcher_for(options, place);
  // Whoever drops the last reference, the transport ends on the loop, where its parts live.
  const std::shared_ptr<TcpTransport> transport(new TcpTransport(place.rank, place.size, options), [](TcpTransport* ended) {
    Loop::shared().post([ended] { delete ended; });
  });
  Card mine = card_of(place, secret, options);
  if (place.size == 1) {
    check_roles({mine.info}, options);
    transport->name_hosts({mine.info.host});
    return std::make_unique<TcpJob>(place, std::vector{mine.info}, transport, nullptr);
  }
  const auto addresses = local_addresses(options.interface);
  const Instant deadline = steady_now() + options.patience;
  auto door = make_door(secret, options, options.ports, addresses);
  auto connecting = std::make_shared<Connecting>(place, transport, door, derive_key(secret), scope);
  auto job = std::make_unique<TcpJob>(place, std::vector<MemberInfo>(place.size), transport, door);
  job->while_connecting([connecting] { connecting->give_up(); });
  mine.candidates = reachable_at(door->endpoint(), addresses);

  Loop::shared().post([connecting] { connecting->open_door(); });
  rendezvous.put(cards_in(scope) + std::to_string(place.rank), write_card(mine));
  const std::vector<Card> cards = gather(place, mine, rendezvous, cards_in(scope), options.patience, deadline);
  std::vector<MemberInfo> members;
  for (const Card& card : cards) members.push_back(card.info);
  check_roles(members, options);
  // Also if the last one came late. Who comes again does not wait long for one that may be lost by now.
  const Instant soon = steady_now() + kConnectAtLeast, connected_by = rejoins ? soon : std::max(deadline, soon);

  std::vector<std::string> hosts;
  std::vector<std::vector<Endpoint>> candidates;
  for (Rank rank = 0; rank < place.size; ++rank) {
    hosts.push_back(cards[rank].info.host);
    candidates.push_back(in_order(cards[rank], rank, mine, addresses));
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
    throw Error(Code::peer_lost, "no connection with " + *joined, "join", "check the network between these hosts");
  }
  Loop::shared().post([transport, neighbours = find_neighbours(cards, mine, place.rank)] { transport->share(neighbours); });
  const bool shared = Loop::shared().drive([&] { return transport->shared() || transport->failure(); }, connected_by);
  if (const Failure failure = transport->failure()) throw Error(*failure);
  if (!shared) throw Error(Code::peer_lost, "a member of this host is connected, but does not say whether it shares memory", "join");
  for (Rank rank = 0; rank < place.size; ++rank) {
    const Endpoint listening(connecting->used(rank).address(), cards[rank].candidates.front().port());
    members[rank].address = show(rank == place.rank ? for_people(mine) : listening);
  }
  job->connected(std::move(members));
  return job;
}

}  // namespace shoal::net

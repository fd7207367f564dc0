// Where the members of each launcher meet. `shoal run` holds a coordinator; elsewhere rank 0 does until all have joined, and the
// others find it: through PMIx, which also carries the job's secret, or at the address that the launcher's variables give.
#include <algorithm>

#include "shoal/core/host.h"
#include "shoal/core/random.h"
#include "shoal/net/again.h"
#include "shoal/net/card.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/environment.h"
#include "shoal/net/interface.h"
#include "shoal/net/meet.h"
#include "shoal/net/pmix.h"
#include "shoal/net/reach.h"
#include "shoal/net/resolve.h"
#include "shoal/net/tcp.h"

namespace shoal::net {
namespace {

constexpr Nanoseconds kHearsOfStop = std::chrono::milliseconds(250);  // whether to wait any longer
constexpr Nanoseconds kWhileTheyTrain = std::chrono::hours(24) * 365;

constexpr const char* kMeetingCard = "shoal.meet", *kMeetingSecret = "shoal.secret";

std::unique_ptr<Job> join_at(const Place& place, Rendezvous& rendezvous, const std::string& secret, const JoinOptions& options) {
  return join_tcp(place, rendezvous, scope_of(place.generation), secret, options);
}

}  // namespace

std::unique_ptr<Job> join_as_client(const Place& place, const std::string& secret, const JoinOptions& options, const std::stop_token& stop) {
  CoordinatorClient client(secret, place, options.patience);
  Stoppable board(client, stop);
  JoinOptions meeting = options;
  // Those who are left come when a step or an evaluation of theirs is over. Who waits in vain hears so: by a later generation, or by the end of the run.
  if (options.on_peer_lost == OnPeerLost::regrow && place.generation > 0) meeting.patience = kWhileTheyTrain;
  return join_at(place, board, secret, meeting);
}

std::string Stoppable::get(const std::string& key, Nanoseconds patience) {
  if (!stop_.stop_possible()) return board_.get(key, patience);
  for (const Instant deadline = steady_now() + patience;;) {
    if (stop_.stop_requested()) throw Error(Code::cancelled, "nobody waits for the others any more", "join");
    const Nanoseconds left = std::max(Nanoseconds(deadline - steady_now()), Nanoseconds(1));
    try {
      return board_.get(key, std::min(left, kHearsOfStop));
    } catch (const Error& error) {
      if (error.code() != Code::timeout || left <= kHearsOfStop) throw;
    }
  }
}

namespace {

// Rank 0 goes when every member has a connection with it, and so has read all that it wants from the coordinator.
std::unique_ptr<Job> join_as_host(Place place, const std::string& secret, std::shared_ptr<Door> door, const JoinOptions& options) {
  const Endpoint at = door->endpoint();
  const bool everywhere = at.address().is_unspecified();
  place.coordinator = everywhere ? "127.0.0.1:" + std::to_string(at.port()) : show(at);
  Coordinator coordinator(std::move(door), place.job, place.size);
  try {
    return join_as_client(place, secret, options);
  } catch (const Error& error) {
    coordinator.give_up(error);
    throw;
  }
}

std::unique_ptr<Job> join_by_pmix(Place place, const JoinOptions& options) {
  Pmix pmix;
  place.size = pmix.size();
  if (place.rank == 0) {
    const std::string secret = find_secret().value_or(random_hex(32));
    const auto addresses = local_addresses(options.interface);
    auto door = make_door(secret, options, options.ports, addresses);
    Card card;
    card.info = {.id = {}, .host = host_name(), .boot = boot_identity(), .address = {}, .pid = 0};
    card.candidates = reachable_at(door->endpoint(), addresses);
    pmix.put(kMeetingCard, write_card(card));
    pmix.put(kMeetingSecret, secret);
    return join_as_host(place, secret, std::move(door), options);
  }
  const Card card = read_card(pmix.get(0, kMeetingCard, options.patience));
  const std::string secret = pmix.get(0, kMeetingSecret, options.patience);
  Card self;
  self.info = {.id = {}, .host = host_name(), .boot = boot_identity(), .address = {}, .pid = 0};
  for (const Endpoint& at : in_order(card, 0, self, local_addresses(options.interface))) {
    place.coordinator += (place.coordinator.empty() ? "" : ",") + show(at);
  }
  return join_as_client(place, secret, options);
}

// The others come to the address that was named, whichever it is: all are listened at, or on a chosen interface that one.
std::shared_ptr<Door> door_at_named_address(const Place& place, const std::string& secret, const JoinOptions& options) {
  const std::uint16_t port = port_in(place.coordinator, "SHOAL_COORD");
  JoinOptions where = options;
  std::vector<LocalAddress> chosen;
  if (!where.interface.empty()) {
    const std::vector<Endpoint> named = resolve(place.coordinator, "SHOAL_COORD", options.patience).endpoints;
    for (const LocalAddress& own : local_addresses(where.interface)) {
      if (std::any_of(named.begin(), named.end(), [&](const Endpoint& at) { return at.address() == own.address; })) chosen.push_back(own);
    }
  }
  if (chosen.empty()) where.interface.clear();
  return make_door(secret, where, {port, port}, chosen);
}

// The launcher names the place; rank 0 is there.
std::unique_ptr<Job> join_by_address(const Place& place, const JoinOptions& options) {
  const std::string secret = find_secret().value_or("");
  if (secret.empty() && place.hosts != 1) {
    throw Error(Code::invalid_argument, "members that " + std::string(name(place.launcher)) + " starts on several hosts need a secret",
                "SHOAL_SECRET_FILE", "name a file that only you can read (chmod 600) and every host has");
  }
  if (place.rank != 0) return join_as_client(place, secret, options);
  return join_as_host(place, secret, door_at_named_address(place, secret, options), options);
}

}  // namespace

std::unique_ptr<Job> join(const Place& place, Rendezvous& rendezvous, const JoinOptions& options) {
  return join_at(place, rendezvous, find_secret().value_or(""), options);
}

std::unique_ptr<Job> join(const JoinOptions& options) {
  const Place place = find_place();
  struct Nowhere final : Rendezvous {  // a member alone meets nobody
    void put(const std::string&, const std::string&) override {}
    std::string get(const std::string& key, Nanoseconds) override { throw Error(Code::internal, "alone, yet asked for " + key); }
  };
  if (place.size == 1) {
    Nowhere nowhere;
    return join(place, nowhere, options);
  }
  const JoinOptions chosen = with_environment(options);
  // Before anybody is looked for, who may be beyond it.
  if (!chosen.interface.empty()) check_interface(chosen.interface, "SHOAL_INTERFACE");
  switch (place.launcher) {
    case Place::Launcher::torchrun:
      throw Error(Code::unsupported, "started by torchrun, whose store only Python can hand over", "join",
                  "call shoal.init() in Python, or start with `shoal run`");
    case Place::Launcher::shoal: {
      const std::string secret = find_secret().value_or("");
      return replaces_lost(*chosen.on_peer_lost) ? join_or_come(place, secret, chosen) : join_as_client(place, secret, chosen);
    }
    case Place::Launcher::pmix: return join_by_pmix(place, chosen);
    default: return join_by_address(place, chosen);
  }
}

}  // namespace shoal::net

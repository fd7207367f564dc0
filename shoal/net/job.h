// A member's place in a run, and how it finds the others.
//
// A Rendezvous is a small board of strings that all members of one generation see: who is there, at which
// address. join() uses it once, connects every pair over TCP, proves the job's secret both ways and hands
// back a Job whose transport is ready. Nothing is resolved by host name to find oneself: a member advertises
// the addresses its own sockets have and peers keep the one that answers a connection.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

// Where members meet. Implementations: our own coordinator (coordinator.h), a c10d Store (nn/), and for a member alone one that nobody
// asks (meet.cc).
class Rendezvous {
 public:
  static constexpr std::size_t kLongestValue = 64 * 1024;  // bytes that any of them takes
  virtual ~Rendezvous() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  // Waits for the key; throws Error{timeout} naming it after `patience`.
  virtual std::string get(const std::string& key, Nanoseconds patience) = 0;
};

// The place of this process, found in its environment (docs/launchers/). In this order: `shoal run` and whoever sets SHOAL_RANK,
// SHOAL_SIZE and SHOAL_COORD; torchrun (RANK, WORLD_SIZE, ...), whose store is handed in by Python; PMIx (mpirun, srun
// --mpi=pmix); Slurm's srun; Open MPI without PMIx; a Kubernetes indexed job; else alone.
// Torchrun goes before those that may have started it, for its workers inherit their variables too; but RANK and WORLD_SIZE
// that a job script sets for all of its members count only where no other launcher is seen.
struct Place {
  enum class Launcher { alone, shoal, torchrun, pmix, slurm, openmpi, kubernetes } launcher = Launcher::alone;
  Rank rank = 0, size = 1;
  std::uint64_t generation = 0;
  std::string job;           // name of the run, the same on all members
  std::string coordinator;   // host:port, several by commas; empty for torchrun and PMIx, which have boards of their own
  unsigned hosts = 0;        // that the members are spread over, where the launcher says so; 0: not known
};
const char* name(Place::Launcher launcher);  // "shoal", "torchrun", ...
Place find_place();          // throws Error{invalid_argument} naming the variable that is wrong

// SHOAL_SECRET, else the 0600 file SHOAL_SECRET_FILE; nullopt where neither is set (then only loopback is bound).
std::optional<std::string> find_secret();

struct MemberInfo {
  std::string id;        // stable across re-ranking: random, made at start
  std::string host;      // host name, for people
  std::string boot;      // boot id + network namespace: equal means same host
  std::string address;   // the one in use, "10.77.0.2:40123"
  std::uint32_t pid = 0;
  bool serves = false;   // it has no part of the work, and only adds what the others send (SHOAL_ROLE=server)
};

// How many members work: the first ones, for those that serve come last. Throws Error{invalid_argument} where a server stands before a worker, or nobody
// works; the same on all members.
Rank workers_among(const std::vector<MemberInfo>& members);

struct PortRange {
  std::uint16_t first = 0, last = 0;   // 0: any
};
PortRange parse_port_range(const std::string& text, const std::string& where);  // "20000-20100"; throws Error{invalid_argument}

OnPeerLost on_peer_lost_from(const std::string& text, const std::string& where);  // "fail", "shrink", "rejoin", "regrow"; throws Error{invalid_argument}
const char* name(OnPeerLost policy);

enum class Packing : std::uint8_t {
  automatic,  // what a link of at most some 10 Gbit/s carries in streams of class bulk and background, where that makes it fewer bytes (core/packed_words.h)
  always,     // also over loopback, and however fast links are
  never,
};

struct JoinOptions {
  Nanoseconds patience{};                               // until every member is there; 0: SHOAL_JOIN_TIMEOUT seconds, else 60
  Nanoseconds heartbeat = std::chrono::milliseconds(500);
  Nanoseconds suspect = std::chrono::seconds(2);        // silent this long: said in the log and the report
  Nanoseconds dead = std::chrono::seconds(5);           // silent this long: PeerLost
  Nanoseconds stalled = std::chrono::minutes(1);        // heard, and one of its connections has acknowledged nothing for so long: PeerLost
  std::string interface;                                // bind to this one's addresses only; SHOAL_INTERFACE if empty
  PortRange ports;                                      // listen on these only; SHOAL_PORT_RANGE if any
  std::optional<OnPeerLost> on_peer_lost;               // the same on all members; SHOAL_ON_PEER_LOST=fail|shrink|rejoin|regrow if not set, else fail
  Nanoseconds a_step = std::chrono::minutes(30);        // the longest for which a member may be at something while more join; then it is lost
  bool takes_over = false;                              // this program can take over the others' state: else what replaces_lost() is refused
  std::optional<bool> serves;                           // this member only serves; SHOAL_ROLE=worker|server if not set, else no
  bool takes_servers = false;                           // this program has something for members to do that only serve: else they are refused
  std::optional<bool> shared_memory;                    // between members of one host, and Transport::lendable(); SHOAL_SHARED_MEMORY if not set, else yes
  std::optional<Packing> packing;                       // by this member; SHOAL_PACKING=auto|always|never if not set, else auto
  // Code and configuration that must be equal on all members, value by name, beside Shoal's own version. One that differs
  // is refused in a line that names it, both members and both values.
  std::map<std::string, std::string> settings;
};

// What SHOAL_JOIN_TIMEOUT, SHOAL_INTERFACE, SHOAL_PORT_RANGE, SHOAL_ON_PEER_LOST, SHOAL_ROLE, SHOAL_SHARED_MEMORY and SHOAL_PACKING say where `options` say nothing. Who joins calls it; others
// only to know the same. Throws Error{invalid_argument} naming the variable that is wrong.
JoinOptions with_environment(JoinOptions options);

// Throws Error{unsupported} where this launcher's members cannot have what `options` say.
void require_launcher_for(const JoinOptions& options, const Place& place);

class Job {
 public:
  virtual ~Job() = default;   // leaves in order: says goodbye, so that peers do not see a loss
  virtual const Place& place() const = 0;
  virtual const std::vector<MemberInfo>& members() const = 0;  // by rank
  virtual Transport& transport() = 0;
};

// Blocks until all `place.size` members are connected. With size 1 there is no network at all.
// Errors: peer_lost naming the ranks that are missing or cannot be reached; mismatch naming the member that differs and in
// what; invalid_argument or io naming address and port.
std::unique_ptr<Job> join(const Place& place, Rendezvous& rendezvous, const JoinOptions& options = {});
// The same with find_place(), where the members of its launcher meet: at the coordinator of `shoal run`, or at one that rank 0
// holds while they join.
std::unique_ptr<Job> join(const JoinOptions& options = {});
// Where replaces_lost(), by each member of `before` that is left: tells the launcher whom they lost, waits until it has started others in their
// places and joins the run anew with all of them, in a later generation. If another is lost on the way there is one more. Errors as join();
// peer_lost: nobody came within the patience.
std::unique_ptr<Job> join_again(const Place& before, const std::vector<Rank>& lost, const JoinOptions& options = {});

}  // namespace shoal::net

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
// asks (place.cc).
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  // Waits for the key; throws Error{timeout} naming it after `patience`.
  virtual std::string get(const std::string& key, Nanoseconds patience) = 0;
};

// The place of this process, found in its environment (research/cluster.md 4.2): `shoal run` and any launcher
// that sets SHOAL_RANK, SHOAL_SIZE and SHOAL_COORD; else torchrun (RANK, WORLD_SIZE, MASTER_ADDR, ...), whose
// store is handed in by Python; else alone.
struct Place {
  enum class Launcher { alone, shoal, torchrun } launcher = Launcher::alone;
  Rank rank = 0, size = 1;
  std::uint64_t generation = 0;
  std::string job;           // name of the run, the same on all members
  std::string coordinator;   // host:port, with launcher shoal
};
Place find_place();          // throws Error{invalid_argument} naming the variable that is wrong

// SHOAL_SECRET, else the 0600 file SHOAL_SECRET_FILE; nullopt where neither is set (then only loopback is bound).
std::optional<std::string> find_secret();

struct MemberInfo {
  std::string id;        // stable across re-ranking: random, made at start
  std::string host;      // host name, for people
  std::string boot;      // boot id + network namespace: equal means same host
  std::string address;   // the one in use, "10.77.0.2:40123"
  std::uint32_t pid = 0;
};

struct JoinOptions {
  Nanoseconds patience = std::chrono::seconds(60);      // until every member is there
  Nanoseconds heartbeat = std::chrono::milliseconds(500);
  Nanoseconds suspect = std::chrono::seconds(2);        // silent this long: said in the log and the report
  Nanoseconds dead = std::chrono::seconds(5);           // silent this long: PeerLost
  std::string interface;                                // bind to this one's addresses only
  // Code and configuration that must be equal on all members, value by name, beside Shoal's own version. One that differs
  // is refused in a line that names it, both members and both values.
  std::map<std::string, std::string> settings;
};

class Job {
 public:
  virtual ~Job() = default;   // leaves in order: says goodbye, so that peers do not see a loss
  virtual const Place& place() const = 0;
  virtual const std::vector<MemberInfo>& members() const = 0;  // by rank
  virtual Transport& transport() = 0;
};

// Blocks until all `place.size` members are connected. With size 1 there is no network at all.
// Errors: timeout naming the ranks that are missing; mismatch naming the member that differs and in what;
// io naming address and port.
std::unique_ptr<Job> join(const Place& place, Rendezvous& rendezvous, const JoinOptions& options = {});
// The same with find_place() and the coordinator it names.
std::unique_ptr<Job> join(const JoinOptions& options = {});

}  // namespace shoal::net

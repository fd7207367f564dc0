// A lab: hosts with limited links on this machine. Each host is a network namespace with one interface, c0;
// one more namespace is the switch between them. Nothing outside these namespaces is touched: no device,
// address or queue of this machine's own network.
//
//   shoal-NAME-0  c0 ===== p0  shoal-NAME-sw
//   shoal-NAME-1  c0 ===== p1     bridge0      a token bucket (tbf) on both ends of each link: full duplex
//
// A lab made of a topology with several switches has a bridge for each, joined by links with buckets of their own.
//
// A lab is remembered in /run/shoal/labs/NAME.json and lives until `down` or a restart of the machine.
// Making one needs root.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/spawn.h"
#include "shoal/topo/topology.h"

namespace shoal::app {

struct LabHost {
  std::string name;     // "host0"
  std::string network;  // namespace, "shoal-demo-0"
  std::string address;  // "10.77.0.1"
  double up = 0;        // bytes/s, host to switch
  double down = 0;      // bytes/s, switch to host
  unsigned bridge = 0;  // the switch it hangs on, where there are several

  HostSpace space() const;
};

struct Trunk {          // between two of a lab's switches
  unsigned a = 0, b = 0;
  double there = 0, back = 0;  // bytes/s
};

struct Lab {
  std::string name;
  std::vector<LabHost> hosts;
};

// `members` hosts named host0, host1, ... with the same rate both ways.
std::vector<LabHost> uniform_hosts(unsigned members, const std::string& rate);
// From lines "host rate [rate_down]"; # begins a comment. Throws Error{invalid_argument} naming file and
// line.
std::vector<LabHost> read_rates(const std::filesystem::path& file);

// Hosts on switches that are joined by trunks, as a topology says: every host on one switch, and one way between any two. Latencies are
// not made (this machine's kernel delays nothing). Throws Error{invalid_argument} naming what cannot be laid out so.
struct Wiring {
  std::vector<LabHost> hosts;
  std::vector<Trunk> trunks;
};
Wiring wiring_of(const topo::Topology& topology);

// Makes the lab, or leaves nothing behind. Throws Error{invalid_argument} if the name is taken or malformed,
// Error{unsupported} where this machine permits no namespaces.
Lab lab_up(const std::string& name, std::vector<LabHost> hosts, const std::vector<Trunk>& trunks = {});
// Ends what still runs inside and removes everything of that name; false if there was nothing.
bool lab_down(const std::string& name);
Lab find_lab(const std::string& name);  // throws Error{invalid_argument}
std::vector<Lab> list_labs();
// By name or number. Throws Error{invalid_argument} with the names.
const LabHost& find_host(const Lab& lab, const std::string& host);
// Takes the host's cable out of the switch, or puts it back: bytes vanish, nobody is told.
void lab_cut(const Lab& lab, const LabHost& host);
void lab_heal(const Lab& lab, const LabHost& host);
// Another rate for the host's link, at once and for what is under way: as from uniform_hosts(), `down` like `up` where it is empty. Throws
// Error{invalid_argument} for what is no rate.
void lab_rate(Lab lab, const LabHost& host, const std::string& up, const std::string& down);

// The token bucket of a link (research/sync.md 7.2). A bucket below a GSO packet makes the kernel split
// packets.
struct Bucket {
  std::uint64_t rate_bits;  // per second
  std::uint64_t burst;      // bytes: rate x 4 ms, at least 128 KB
  std::uint64_t queue;      // bytes: rate x 50 ms, at least the burst, so that one GSO packet always fits
};
Bucket bucket(double bytes_per_second);

}  // namespace shoal::app

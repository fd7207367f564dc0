// Runs collective programs on a topology in simulated time, as collective::Runner runs them: the lanes of each rank begin their slices
// in order and wait as `after` and full windows tell them, slices travel side by side, and each host's one thread pays for every
// message and every addition. What is simulated is what is verified and run: the Program itself, whose loops stay loops.
//
// Between two hosts, streams of one priority take turns, slice by slice, on one path (topo/routes.h), as on one connection. Each slice
// is a flow (kernel.h); it arrives a path's latency after its last byte has left, behind which the next slice follows at once. A
// slice leaves when its receive has been posted: a network that buffers nothing. Pure; threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/sim/costs.h"
#include "shoal/sim/faults.h"
#include "shoal/topo/topology.h"

namespace shoal::sim {

// One run of a program by some hosts.
struct Awaited {                       // by ranks first .. last - 1 of the job that waits
  std::uint32_t job = 0;               // in front of it
  std::uint32_t first = 0, last = 0xffffffff;
};
struct Job {
  std::string name;
  std::shared_ptr<const collective::Program> program;
  std::uint64_t elements = 0;          // in all
  std::shared_ptr<const std::vector<std::uint64_t>> chunks;  // elements of each; nullptr: as collective::Layout::even cuts them
  double element_bytes = 4;
  std::vector<topo::Node> hosts;       // by rank
  // A host begins its part `start` seconds after it has ended its parts in all of these; after the beginning of time if it waits for
  // none in which it has a part.
  double start = 0;
  std::vector<Awaited> after;
  std::uint32_t priority = 0;          // at each sender the smallest is served first (kernel.h)
  // Where members may be lost (faults.h). `together`: of one operation with the job in front of it, which has the same hosts. fewer: the program
  // for those who are left, by their ranks, ascending; throws Error if they can do nothing without the others.
  bool together = false;
  std::function<std::shared_ptr<const collective::Program>(const std::vector<std::uint32_t>& ranks)> fewer;
};

// Bytes that travel whatever the jobs do: others' traffic.
struct Transfer {
  topo::Node from = 0, to = 0;
  double bytes = 0;                    // infinity: for as long as there are jobs
  double start = 0;                    // seconds
  std::uint32_t priority = 0;
  double rate = std::numeric_limits<double>::infinity();  // bytes/s at most
};

struct JobOutcome {
  double begin = 0, end = 0;           // of the first and of the last of its members
  std::vector<double> finished;        // by rank; infinity: lost before
};
struct LinkUse {
  double bytes = 0;
  double busy = 0;                     // bytes / (the link's goodput x seconds), by the rate that it had at first
};
struct Sent {                          // one flow of a job
  static constexpr std::uint32_t kState = 0xffffffff;  // instead of a job: what newcomers take over
  std::uint32_t job = 0;
  topo::Node from = 0, to = 0;
  double begin = 0, end = 0;           // of its bytes on the first link
  double bytes = 0;
};

struct Outcome {
  double seconds = 0;                  // when the last job ended; without jobs, the last transfer
  std::vector<JobOutcome> jobs;
  std::vector<double> transfers;       // when each had arrived; infinity: not yet
  std::vector<FaultOutcome> faults;
  std::vector<LinkUse> links;          // by number in the topology
  std::uint32_t bottleneck = 0;        // the busiest link; meaningless in a topology without links
  std::uint64_t flows = 0;             // how many were simulated
  std::vector<Sent> trace;             // in order of their ends
};

// Throws Error{invalid_argument}: a program that stands still, naming rank, lane and op; hosts that are not in the topology or
// without a path; a topology whose rates are relative; losses that nobody can go on from.
Outcome simulate(const topo::Topology& topology, std::span<const Job> jobs, std::span<const Transfer> transfers, const Costs& costs = {},
                 bool trace = false, const Faults& faults = {});

}  // namespace shoal::sim

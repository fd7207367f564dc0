// Members and links that are lost or grow slow at some moment, and what those who are left do about it (docs/failures.md), priced. Values.
//
// From `at` on a lost member neither sends nor takes anything. A killed one is known by its closed connections, a path's latency later; a silent
// one (stopped, or behind a cut link) after Recovery::silence_seconds. Of a cut link the members go whom those that are left give up:
// net/losses.h, over all pairs whose way led through it. Whatever forwards others' bytes goes on doing so.
//
// An operation is a job, or several that are `together`. It counts where all hold it when a member is lost; else it is given up and, when all have
// voted, begun again from its kept inputs: by those who are left with a program for so few (shrink), or by all when others have come in the
// lost places with the state of those who are left (rejoin). Also undisturbed it costs two messages a pair, of which the second is waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::sim {

struct Fault {
  enum class Kind : std::uint8_t { killed, stopped, slow_host, cut, slow_link } kind = Kind::killed;
  double at = 0;                     // seconds
  topo::Node host = 0;               // killed, stopped, slow_host
  std::vector<std::uint32_t> links;  // cut, slow_link
  double rate = 0;                   // slow_link: bytes/s of each of them
  double factor = 1;                 // slow_host: its thread takes so many times as long
};
inline bool loses(const Fault& fault) { return fault.kind != Fault::Kind::slow_host && fault.kind != Fault::Kind::slow_link; }

struct Recovery {
  bool rejoin = false;                    // others come in place of lost members; else those who are left go on
  double silence_seconds = 4.25;          // JoinOptions::dead of training from the last heartbeat, half a period ago, and a second in which all hear of it
  double proof_seconds = 1e-6;            // to build and verify a program, for each of its ops (collective/verify.h)
  // rejoin:
  double restart_seconds = 1.8;           // from the end of a process until the one in its place joins: Python and PyTorch
  double join_seconds = 0.05;             // of all, in their new generation
  double state_bytes = 0;                 // that a newcomer takes over, along a chain from one that has it through all that came
  double state_seconds_per_byte = 5e-9;   // to write it down and to read it
};

struct Faults {
  std::optional<Recovery> recovery;       // without it nobody may be lost, and nothing is paid for going on
  std::vector<Fault> list;                // in order of time
};

inline constexpr std::size_t kMostSurvivors = 512;  // hosts of jobs where somebody may be lost: every pair talks

// What became of a fault. Times in seconds from the beginning; infinity: the jobs had ended before.
struct FaultOutcome {
  std::vector<topo::Node> lost;
  double agreed = 0;                      // all who are left knew, and had voted: for the last of several losses that they came to know of together
  double resumed = 0;                     // they went on: with other programs, or with the newcomers
  std::uint32_t again = 0;                // operations begun again
  double undone = 0;                      // the longest that one of these had run
};

}  // namespace shoal::sim

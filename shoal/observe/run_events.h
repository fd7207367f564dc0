// All members' events on one axis: nanoseconds since the first of them.
//
// Steady clocks of two machines have nothing to do with each other. Every file says how far its clock was from unix time
// when it began, and through unix time they are aligned: exactly on one machine (members with one boot id share one clock
// and one offset), across machines as well as their wall clocks agree (NTP: about a millisecond). `clocks` says which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/core/event.h"
#include "shoal/observe/event_line.h"
#include "shoal/observe/run_folder.h"

namespace shoal::observe {

struct RankEvents {
  Author who;
  std::vector<Event> events;  // by begin; `name` is an index of RunEvents::names
};

struct RunEvents {
  std::vector<RankEvents> ranks;     // by rank; members whose file is missing are left out
  std::vector<std::string> names{""};
  std::vector<std::string> remarks;  // what is missing or damaged, one line each
  std::string clocks;                // how the members' clocks were aligned, one sentence
  int size = 0;                      // members of the run
  std::int64_t unix_begin_ns = 0;    // where the axis starts

  const std::string& name_of(const Event& event) const { return names[event.name]; }
};

// Reads events-N.jsonl of all members, or events.jsonl where they were merged. Damaged lines are left out, and a
// remark a file says so. Throws Error{invalid_argument} where there is nothing to read.
RunEvents read_run(const RunFolder& folder);

// Writes events.jsonl, all members' events by begin, and removes the members' own files. Throws Error{io}.
void write_merged(const RunFolder& folder, const RunEvents& run);

}  // namespace shoal::observe

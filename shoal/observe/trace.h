// The run as a Chrome trace (JSON, gzip) for ui.perfetto.dev or chrome://tracing: a process a member with the tracks
//   compute · waiting · exchange (as many as lie side by side) · to and from each peer · counters of the metrics
#pragma once

#include <filesystem>

#include "shoal/observe/run_events.h"

namespace shoal::observe {

// Writes trace.json.gz into the folder. Throws Error{io}.
void write_trace(const RunFolder& folder, const RunEvents& run);

// Spans that overlap cannot share a track: gives each the first lane that is free at its begin. The lanes' ends are
// `busy_until`, which grows up to `most`; beyond it -1.
int free_lane(std::vector<Instant>& busy_until, const Event& event, int most);

}  // namespace shoal::observe

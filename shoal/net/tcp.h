// The TCP transport. Per peer two connections: control (messages of at most 4 KB: urgent streams, credit,
// heartbeats, goodbyes) and bulk (frames of slices). One I/O thread a process, shared by all transports of the
// process; event-driven; a loop that is idle sleeps. See docs/architecture.md, "On the wire", for frames and credit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shoal/net/job.h"
#include "shoal/net/transport.h"

namespace shoal::net {

// Joins through `rendezvous` and connects every pair. What join() uses for more than one member, and what the
// c10d backend uses with the Store, rank and size it was given. `scope` prefixes every key (generation, group).
std::unique_ptr<Job> join_tcp(const Place& place, Rendezvous& rendezvous, const std::string& scope,
                              const std::string& secret, const JoinOptions& options);

}  // namespace shoal::net

// What the kernel has measured about a connection. Threads: any.
#pragma once

#include "shoal/core/time.h"

namespace shoal::net {

// The shortest round trip of the last minutes, so without the queues that the load makes; 0: not known.
Nanoseconds shortest_round_trip(int fd);

}  // namespace shoal::net

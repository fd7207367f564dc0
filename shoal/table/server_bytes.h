// What the servers of one member have moved of a table beside the answers to readers. Threads: the loop counts, any looks.
#pragma once

#include <atomic>
#include <cstdint>

namespace shoal::table {

struct ServerBytes {
  std::atomic<std::uint64_t> given{0}, taken{0};  // of rows that another member is to hold, too, or of which this one is (handover.h)
  std::atomic<std::uint64_t> saved{0};            // to snapshots
};

}  // namespace shoal::table

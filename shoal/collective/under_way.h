// Slices of one stream that a lane has given to its transport at once: what runs programs (operation.h) and what simulates them (sim/costs.h) go by the same.
#pragma once

#include <cstdint>

namespace shoal::collective {

// To send, what keeps it busy until the next one is given; to receive, what comes while word of it goes to its sender, through the queues of full links in both
// directions, for a slice is a millisecond of a link.
inline constexpr std::uint32_t kSending = 4, kReceiving = 16;

}  // namespace shoal::collective

// Members that share tables leave together: a member's last barrier may be over while its answers to others are still on their way, and with
// its tables they would be gone.
#pragma once

#include <cstdint>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::learn {

// By all members, after their last use of tables and before these go. Returns when all have called it. channel: of the transport's
// operations; one that nothing else has used. Throws Error{peer_lost, timeout}.
void leave_together(net::Transport& transport, std::uint16_t channel = 6, Nanoseconds patience = std::chrono::seconds(300));

}  // namespace shoal::learn

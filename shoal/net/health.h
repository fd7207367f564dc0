// Who is heard and who is not: pure logic over the moments at which bytes came from each peer.
// One thread; time is handed in.
#pragma once

#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

struct HealthLimits {
  Nanoseconds heartbeat, suspect, dead;
};

class Health {
 public:
  Health(Rank size, Rank self, const HealthLimits& limits, Instant now);

  void heard(Rank peer, Instant now);
  void left(Rank peer);            // said goodbye: silence is expected

  struct Verdict {
    std::vector<Rank> suspects;    // became silent since the last tick
    std::vector<Rank> dead;        // silent for too long, the longest first
    bool cut_off = false;          // with `dead`: nobody else is heard either, of two peers or more
  };
  // Once a heartbeat. A tick that comes late means that this member itself stood still: nobody is blamed for that time.
  Verdict tick(Instant now);

 private:
  struct Peer {
    Instant heard;
    bool present = true, suspected = false;
  };
  std::vector<Peer> peers_;
  HealthLimits limits_;
  Instant last_tick_;
};

}  // namespace shoal::net

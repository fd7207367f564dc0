// What moving and adding costs beside the links' rates. Defaults: one I/O thread a host, TCP over Ethernet with an MTU of 1500
// (research/collective.md 4.11 of this project: measured between network namespaces). Values.
#pragma once

#include <cstdint>

#include "shoal/collective/under_way.h"

namespace shoal::sim {

struct Costs {
  double message_seconds = 10e-6;         // a host's thread for each slice that it sends, and for each that it receives: 5-20 us on TCP
  double host_seconds_per_byte = 0;       // its copies and checksums of what it sends and receives: 0.25e-9 to 0.4e-9 where one core
                                          // is slower than the links. A capacity that all flows of the host share; 0: endless
  double add_rate = 8e9;                  // bytes/s that its thread adds or copies from memory; 0: endless
  double goodput = 0.943;                 // share of a link's rate that is payload

  // How fine. Simulated slices are the runner's, of slice_bytes, or so much longer that a run has about most_flows of them. Slices of
  // one stream that are ready together leave together, up to 1/messages_per_lane of what their lane sends. The thread is charged for
  // each slice that the runner would send.
  std::uint32_t slice_bytes = 128 * 1024;
  std::uint32_t most_flows = 1 << 19;
  std::uint32_t messages_per_lane = 100;  // >= 1; more than there are hops in a pipeline of small chunks
  std::uint32_t sending = collective::kSending, receiving = collective::kReceiving;  // slices of a lane under way at once; >= 1
  std::uint32_t window = collective::kReceiving;                                     // slices that a scratch window holds; >= 2

  // Links alone: what closed forms of rates and latencies say.
  static constexpr Costs links_only() {
    Costs costs;
    costs.message_seconds = 0;
    costs.add_rate = 0;
    costs.goodput = 1;
    costs.sending = costs.receiving = 1024;
    return costs;
  }
};

}  // namespace shoal::sim

// Data over several networks at once that no tree can mix: Blink's hybrid of NVLink and PCIe (MLSys 2020, section 4), NICs that are separate networks,
// memory beside TCP. Networks that a tree may mix hop by hop belong into one topology, where pack.h does at least as well.
//
// Channel j moves B_j bytes/s once tau_j seconds have passed (switching peer access from one kind of link to the other, a handshake). All are to end
// at one time t, so data are filled in like water, and a channel that would begin after the end gets none:
//
//     sum_j B_j max(0, t - tau_j) = D,   D_j = B_j max(0, t - tau_j)
//
// With two channels, tau = (0, T): D_2 = D B_2 / (B_1 + B_2) - T B_1 B_2 / (B_1 + B_2), no less than 0, as in the paper. Pure.
#pragma once

#include <span>
#include <vector>

namespace shoal::packing {

struct Channel {
  double rate = 0;  // bytes/s (or any unit of data a second), > 0: of the collective's data there
  double fixed_seconds = 0;  // before its first byte, >= 0
};

struct Split {
  std::vector<double> data;  // [channel], as many bytes together as were to be split
  double seconds = 0;  // until the last of them arrive; 0 for no data
};

// Throws Error{invalid_argument} naming the channel: no channel, a rate or cost that is negative, not finite, or a rate of 0; data that are negative.
Split split(double data, std::span<const Channel> channels);

}  // namespace shoal::packing

// One iteration of a member, foreseen. Two resources work side by side: its thread (forward, backward, products) and its link (full duplex: what
// it sends and what it receives take their time together); and where servers add, they are a third. Pure; the closed forms of research/sync.md 7.4 are its oracle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::exchange {

// When a member goes on after backward.
enum class Order : std::uint8_t {
  fifo,      // gradients leave in order of production; the next forward pass waits for all (wait-free backpropagation)
  priority,  // what forward needs first leaves first; forward waits for what it is about to use (P3: Jayarajan et al., MLSys 2019)
};

// What one unit costs; seconds.
struct Work {
  double ready = 0;            // from the start of backward until its last gradient is there
  double needed = 0;           // from the start of forward until its first use
  std::uint32_t priority = 0;  // the smallest is needed first
  double link = 0;             // on the link
  double bytes = 0;            // of these, what bytes take at its rate: a link that has saved up makes up for them, not for latency
  double latency = 0;          // of `link`, what its steps take to get there: others are on the link meanwhile
  double add = 0;              // a server's, between the first and the second half of `link`; 0: it takes no time of its own
  double behind = 0;           // from when it has left the link until it is there, if others stand there then: behind them in queues that know no order
  double thread = 0;           // of the thread, before its first use
  std::uint32_t pieces = 1;    // that take their turns on the link; >= 1
};

// What a link is beside its rate; seconds of it.
struct LinkTraits {
  double saves = 0;    // saved up at most while it is idle, and made up for later (LinkModel::saves)
  double besides = 0;  // of an iteration, in which the link is idle and which are not in the timeline, as the optimizer's behind a barrier, less those in
                       // which it is busy beside the timeline
  double queued = 0;   // that stand in queues which know no order: pieces in them are not overtaken by what is more urgent
};

struct Timeline {
  std::vector<double> arrived;  // by unit: from the start of backward until its last piece is there
  std::vector<double> waited;   // by unit: what the thread lost to it, waiting and computing
  double seconds = 0;           // of an iteration in the steady state: forward + backward + all that was waited
};
// Units in the order in which they are complete. The link is free when backward begins: all of an iteration has arrived by the end of the
// next forward pass.
Timeline foresee(std::span<const Work> units, double forward, double backward, Order order, const LinkTraits& traits = {});

}  // namespace shoal::exchange

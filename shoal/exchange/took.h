// What an iteration took of a member, as members tell each other and as a plan settles on it.
#pragma once

namespace shoal::exchange {

// Seconds of an iteration. 0: not known.
struct Took {
  double forward = 0, backward = 0, between = 0;  // both passes, and all else: the script's own, and the optimizer's step, also where it is taken in a forward pass
  double processor = 0;                           // of the cores that the member shares with others, of all of them
  double placing = 0;                             // of `between`: means are multiplied and placed as they arrive, and, where each parameter has its own step, stepped
  double waited = 0;                              // besides, for other members and for the network
  double seconds() const { return forward + backward + between; }  // without what was waited
};

}  // namespace shoal::exchange

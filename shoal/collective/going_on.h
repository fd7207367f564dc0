// A part of a program, such as a whole training, in which members may be lost: those who are left begin it again among themselves, from what they
// have kept, without new processes. For rooms that know of no losses themselves (net/narrowed.h); joint.h is for those that do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "shoal/net/transport.h"

namespace shoal::collective {

// Runs part(among) until it has come to its end on all members that are left. `among` is the transport itself; where it survives losses
// (OnPeerLost::shrink) it is one of those who are left, whose ranks count anew after each loss and whose channels are below net::Narrowed::kChannels.
// What one of them does last for all, such as writing a file, is to have a barrier behind it: a loss behind the end of all others is none of this
// call's.
// By all members; nothing else of the transport is used meanwhile, and channels from net::Narrowed::kChannels on are this call's alone.
// What the part throws for itself it has told by among.fail(): then the transport ends on all members with this line. Throws that.
// Threads: any but the loop.
void go_on_without_lost(net::Transport& transport, const std::string& label, const std::function<void(net::Transport& among)>& part);

}  // namespace shoal::collective

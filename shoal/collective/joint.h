// A part of a program that all members run together, on the thread of each one's caller, as one operation of the survivors: when a member is lost in
// the middle the part ends with Error{peer_lost}, and once those that are left agree, each runs it again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shoal/collective/survivors.h"

namespace shoal::collective {

inline constexpr std::uint32_t kJointOperations = 1 << 14;  // of the transport, from Attempt::operation on

// Runs part(attempt) until it has come to its end on all members of one attempt; who they were, with what each said as its weight (`says`): the same on all.
// The part may use the attempt's runner and
// operations, alike on all members, and writes nothing that it reads, so that it may run again.
// Throws what the part throws but for a lost member, then on all members: Error{timeout} on the others; and what ends the transport.
// Threads: any but the loop. Lifetime: transport and survivors outlive the call.
std::vector<Contributor> do_together(net::Transport& transport, Survivors& survivors, Nanoseconds patience, const std::string& label,
                                     const std::function<void(const Attempt&)>& part, double says = 1);

}  // namespace shoal::collective

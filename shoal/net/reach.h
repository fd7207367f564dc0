// At which addresses members can reach each other: where this one listens, what it says of that to the others, and in which
// order it tries what they say. Any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shoal/net/card.h"
#include "shoal/net/dial.h"

namespace shoal::net {

// Listens everywhere (or on the chosen interface) with a secret, else on the loopback only; on the first of `ports` that is free.
// Throws Error{invalid_argument} if none is.
std::shared_ptr<Door> make_door(const std::string& secret, const JoinOptions& options, PortRange ports,
                                const std::vector<LocalAddress>& addresses);
// What a member that listens at `bound` can be reached at.
std::vector<Endpoint> reachable_at(const Endpoint& bound, const std::vector<LocalAddress>& addresses);

// A peer's addresses, the likeliest first: on one host the loopback, then addresses of a network this member is on. Throws
// Error{invalid_argument} naming peer and addresses if none of them can be reached from here.
std::vector<Endpoint> in_order(const Card& peer, Rank rank, const Card& self, const std::vector<LocalAddress>& mine);
// Of all that a member advertises: one that other hosts see, if there is one.
const Endpoint& for_people(const Card& card);

}  // namespace shoal::net

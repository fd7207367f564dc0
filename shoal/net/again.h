// What members and launcher tell each other on the coordinator's board where others come in place of members that were lost
// (OnPeerLost::rejoin), a generation of the run after the other:
//   lost/G   by members of generation G: whom they have lost. Its process may live: a stopped one, or one behind a cut cable
//   again/G  by the launcher: it has started others in their places, so many. All join in generation G
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::net {

inline std::string lost_key(std::uint64_t generation) { return "lost/" + std::to_string(generation); }
inline std::string again_key(std::uint64_t generation) { return "again/" + std::to_string(generation); }

std::string show_list(const std::vector<Rank>& ranks);                // "1,3"
std::vector<Rank> read_list(const std::string& text);                 // what is no rank is left out

}  // namespace shoal::net

// Where others are, by the names that people and launchers give them. Never to find oneself.
#pragma once

#include <string>
#include <vector>

#include "shoal/net/sockets.h"

namespace shoal::net {

struct Resolved {
  std::vector<Endpoint> endpoints;  // may be empty: a name that is not known (yet)
  std::string words;                // for an error line: "node7:4000 (10.0.0.7:4000)", "node7:4000 (an unknown name)"
};
// "host:port", several separated by commas; hosts are names, IPv4 addresses or bracketed IPv6 ones. Blocks while the system looks
// names up, no longer than `patience`: then a name is unknown. Throws Error{invalid_argument} at `where` for what has not that form.
Resolved resolve(const std::string& addresses, const std::string& where, Nanoseconds patience);
// The port in such text, the first one's; looks nothing up.
std::uint16_t port_in(const std::string& addresses, const std::string& where);

}  // namespace shoal::net

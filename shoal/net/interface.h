// The network interface that a user chose, by its name.
#pragma once

#include <string>

namespace shoal::net {

// Throws Error{invalid_argument} at `where`, with the names there are, if this machine has no such interface, or it is down or has no
// address by which others could reach it.
void check_interface(const std::string& name, const std::string& where);

}  // namespace shoal::net

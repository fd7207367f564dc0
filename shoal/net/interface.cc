#include "shoal/net/interface.h"

#include "shoal/core/error.h"
#include "shoal/net/sockets.h"

namespace shoal::net {

void check_interface(const std::string& name, const std::string& where) {
  try {
    local_addresses(name);
  } catch (const Error& error) {
    throw Error(error.code(), error.fact(), where, error.hint());
  }
}

}  // namespace shoal::net

#include "shoal/learn/memory.h"

#include <unistd.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::learn {

void need_memory(double bytes, const std::string& what) {
  const double here = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= here) return;
  throw Error(Code::invalid_argument, what + " need " + show_size(bytes) + " on this member, which has " + show_size(here), "data",
              "where ids leave gaps, number them densely");
}

}  // namespace shoal::learn

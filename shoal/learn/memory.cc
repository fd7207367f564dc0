#include "shoal/learn/memory.h"

#include <unistd.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::learn {

namespace {

double memory() { return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)); }

}  // namespace

bool has_memory(double bytes) { return bytes <= memory(); }

void need_memory(double bytes, const std::string& what) {
  if (has_memory(bytes)) return;
  const double here = memory();
  throw Error(Code::invalid_argument, what + " need " + show_size(bytes) + " on this member, which has " + show_size(here), "data",
              "where ids leave gaps, number them densely");
}

}  // namespace shoal::learn

#include "shoal/learn/memory.h"

#include "shoal/core/error.h"
#include "shoal/core/memory.h"
#include "shoal/core/text.h"

namespace shoal::learn {

bool has_memory(double bytes) { return bytes <= static_cast<double>(memory_here()); }

void need_memory(double bytes, const std::string& what) {
  if (has_memory(bytes)) return;
  const auto here = static_cast<double>(memory_here());
  throw Error(Code::invalid_argument, what + " need " + show_size(bytes) + " on this member, which has " + show_size(here), "data",
              "where ids leave gaps, number them densely");
}

}  // namespace shoal::learn

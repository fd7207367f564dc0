// Ids that are large and few would be given memory from 0 to the largest: better one line than none of it left. Threads: any.
#pragma once

#include <string>

namespace shoal::learn {

bool has_memory(double bytes);  // this machine, so many
// Throws Error{invalid_argument} if this machine has not so many bytes. `what`: "200,000,000 users".
void need_memory(double bytes, const std::string& what);

}  // namespace shoal::learn

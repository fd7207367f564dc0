// The machine that this process runs on, and what it has taken of it. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace shoal {

std::string host_name();  // "unknown" where the kernel gives none
std::string boot_id();    // of the running kernel: equal means same machine, and the same steady clock
double cpu_seconds();     // of all threads of this process, so far
std::vector<int> usable_cores();  // that this process may run on, at least one

}  // namespace shoal

// The machine that this process runs on. Threads: any.
#pragma once

#include <string>

namespace shoal {

std::string host_name();  // "unknown" where the kernel gives none
std::string boot_id();    // of the running kernel: equal means same machine, and the same steady clock

}  // namespace shoal

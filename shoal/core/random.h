// Randomness that nobody can guess or repeat, from the kernel: secrets and names. What a run must repeat comes from seed.h.
// Threads: any.
#pragma once

#include <cstddef>
#include <string>

namespace shoal {

std::string random_hex(std::size_t bytes);  // two digits a byte; throws Error{io} where the kernel gives none

}  // namespace shoal

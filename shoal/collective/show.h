// A program for the eye. Pure; no threads.
#pragma once

#include <string>

#include "shoal/collective/program.h"

namespace shoal::collective {

// One line an op, lanes under their rank, loops with their count; `i` is the iteration, chunks and ranks go round:
//
//   ring: all_reduce of 4 ranks, 4 chunks, adds rotated
//   rank 0
//     lane 0     0       send            chunk 3       input -> rank 1
//                1 2x    send            chunk 2-i     output -> rank 1                    after 1.0
std::string show(const Program& program);

}  // namespace shoal::collective

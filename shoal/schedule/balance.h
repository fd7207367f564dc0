// Work in parts that take about equal time: the costliest piece first, each to the part that has least so far (Graham, SIAM J. Appl. Math. 17(2),
// 1969: at most 4/3 of the best). Values; threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::schedule {

// The part of each piece, from 0. The same for the same costs on any machine: of equal ones the first is first.
std::vector<std::uint32_t> balance(std::span<const double> costs, std::uint32_t parts);

}  // namespace shoal::schedule

// How many elements the chunks of a program have in one run, and where they lie. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

// How many elements each chunk has and where it starts (in elements) in this member's input and output. Counts must
// agree between the two ends of every transfer; chunks that this member never touches may be 0.
struct Layout {
  std::vector<std::uint64_t> count, input, output;  // by chunk
  // `total` elements cut by the program's shares, nearly equal where there are none, into chunks that lie one after another in input
  // and output, rank by rank where ranks own parts; the input of all_gather and gather and the output of reduce_scatter and
  // scatter hold the own part alone, from 0 on. all_to_all: what each member sends is `total` elements, one part for every
  // rank; its output has the senders' parts by rank.
  static Layout even(const Program& program, std::uint32_t rank, std::uint64_t total);
};

// Elements that `rank` hands to the transport in one run, to all members together.
std::uint64_t elements_sent(const Program& program, const Layout& layout, std::uint32_t rank);

}  // namespace shoal::collective

// A tensor of which every member owns a part ("owners", owners_way.cc): a parameter server whose shards lie on all members (research/sync.md 2.4). Gradients
// are added at the owner, which alone steps its part of the parameter and alone has the optimizer's state of it, and sends it to everybody.
//
// Parts lie one after another, by rank. Values; no threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shoal/collective/layout.h"

namespace shoal::exchange {

struct OwnedParts {
  // Elements. Parts begin at multiples of it: loops over vectors of elements then treat each element as in a loop over the whole tensor.
  static constexpr std::uint64_t kBlock = 64;

  std::uint32_t ranks = 1;
  std::uint64_t count = 0;  // elements of the tensor

  std::uint64_t first(std::uint32_t rank) const {  // element; of rank `ranks`: all of them
    const std::uint64_t blocks = (count + kBlock - 1) / kBlock;
    return std::min(count, blocks * rank / ranks * kBlock);
  }
  std::uint64_t size(std::uint32_t rank) const { return first(rank + 1) - first(rank); }

  // For a program of one chunk a rank, whose input or output has the own part alone where `own_input` or `own_output` says so.
  collective::Layout layout(bool own_input, bool own_output) const {
    collective::Layout layout;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      layout.count.push_back(size(rank));
      layout.input.push_back(own_input ? 0 : first(rank));
      layout.output.push_back(own_output ? 0 : first(rank));
    }
    return layout;
  }
};

}  // namespace shoal::exchange

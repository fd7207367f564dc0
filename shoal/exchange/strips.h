// A fully connected layer that a group of members share (Das et al., "Distributed deep learning using synchronous stochastic gradient
// descent", arXiv 1602.06709, section 3; research/sync.md 4.1). N members form G groups of M = N / G neighbours by rank. Of the layer's weight,
// outputs x inputs, every member of a group holds one *strip* of rows; the member at the same *place* of every other group holds the same one.
//
// Inside a group activations travel (nn/layer_group.h), between the groups the gradients of strips (hybrid_way.cc). Values; no threads.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::exchange {

// Elements of the weight of a layer that goes by factors or is divided: smaller ones are packed with others (python/shoal/factored.py).
inline constexpr std::uint64_t kLeastLayer = 1 << 16;

struct Strips {
  std::uint32_t ranks = 1, groups = 1;  // groups divides ranks
  std::uint64_t outputs = 0;            // of the layer

  std::uint32_t members() const { return ranks / groups; }                       // of a group
  std::uint32_t place(std::uint32_t rank) const { return rank % members(); }
  std::uint64_t first(std::uint32_t place) const { return outputs * place / members(); }  // row of the weight; of place `members()`: all of them
  std::uint64_t rows(std::uint32_t place) const { return first(place + 1) - first(place); }

  std::vector<std::uint32_t> group_of(std::uint32_t rank) const {  // ranks, by place
    std::vector<std::uint32_t> all;
    for (std::uint32_t p = 0; p < members(); ++p) all.push_back(rank - place(rank) + p);
    return all;
  }
  std::vector<std::uint32_t> holders(std::uint32_t place) const {  // ranks, by group
    std::vector<std::uint32_t> all;
    for (std::uint32_t g = 0; g < groups; ++g) all.push_back(g * members() + place);
    return all;
  }
};

}  // namespace shoal::exchange

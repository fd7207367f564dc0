// Who updates which block of a model when: blocks go round the workers, so that each worker meets every block once a round, and a block is one
// worker's at a time (Zheng, Kim, Ho et al., "Model-parallel inference for big topic models", arXiv 1411.2305, section 3; STRADS, NIPS'14).
//
// There are `ahead` blocks a worker. At step t worker p has block (p ahead + t) mod blocks, and p - 1 needs it `ahead` steps later:
//
//      step      0  1  2  3  4  5  6  7          three workers, two blocks each: while a worker updates one, the other one comes
//   worker 0     0  1  2  3  4  5  0  1
//   worker 1     2  3  4  5  0  1  2  3
//   worker 2     4  5  0  1  2  3  4  5
//
// A round is as many steps as there are blocks; after it everything is where it was. Values; threads: any.
#pragma once

#include <cstdint>

namespace shoal::schedule {

struct Rotation {
  std::uint32_t workers = 1, ahead = 2;

  std::uint32_t blocks() const { return workers * ahead; }
  std::uint32_t block(std::uint32_t worker, std::uint64_t step) const {
    return static_cast<std::uint32_t>((std::uint64_t{worker} * ahead + step) % blocks());
  }
  std::uint32_t next(std::uint32_t worker) const { return (worker + workers - 1) % workers; }  // who has the block after it
  std::uint64_t next_step(std::uint64_t step) const { return step + ahead; }                   // and at which step
};

}  // namespace shoal::schedule

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
// A round is as many steps as there are blocks; after it everything is where it was.
//
// Where every team (the workers of one member) has a copy of each block, the turns are the same: so no two workers anywhere update a block in the same
// step. Then a copy goes round its team alone, and when the team's last worker has had it, the team tells the others what it did to it; also behind
// the last turn of a round, so that between two rounds nothing is untold. Two teams of two workers, one block a worker, block 0 of a round:
//
//      step      0      1   2      3
//      worker    0      3   2      1       the team {2, 3} tells after step 2; the team {0, 1} after step 0, and after step 3, with which the round ends
//
// Values; threads: any.
#pragma once

#include <compare>
#include <cstdint>

namespace shoal::schedule {

struct Place {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
  auto operator<=>(const Place&) const = default;
};

struct Team {  // workers `first` to `first + size - 1`
  std::uint32_t first = 0, size = 1;
};

struct Rotation {
  std::uint32_t workers = 1, ahead = 2;

  std::uint32_t blocks() const { return workers * ahead; }
  std::uint32_t block(std::uint32_t worker, std::uint64_t step) const {
    return static_cast<std::uint32_t>((std::uint64_t{worker} * ahead + step) % blocks());
  }
  std::uint32_t next(std::uint32_t worker) const { return (worker + workers - 1) % workers; }  // who has the block after it
  std::uint64_t next_step(std::uint64_t step) const { return step + ahead; }                   // and at which step

  // Of copies that teams have: who of that team has its copy next, and at which step.
  Place next_within(const Team& team, const Place& place) const {
    if (place.worker != team.first) return {place.worker - 1, place.step + ahead};
    return {team.first + team.size - 1, place.step + std::uint64_t{ahead} * (workers - team.size + 1)};
  }
  // The first of the team to have it from the round on that begins at step `round`.
  Place first_within(const Team& team, std::uint32_t block, std::uint64_t round) const {
    Place first{team.first, round + step_in_round(team.first, block)};
    for (std::uint32_t worker = team.first + 1; worker < team.first + team.size; ++worker) {
      if (const std::uint64_t step = round + step_in_round(worker, block); step < first.step) first = {worker, step};
    }
    return first;
  }
  // Whether the team tells what it did after this turn.
  bool tells(const Team& team, const Place& place) const {
    return place.worker == team.first || next_within(team, place).step / blocks() != place.step / blocks();
  }
  std::uint64_t step_in_round(std::uint32_t worker, std::uint32_t block) const {
    return (block + blocks() - std::uint64_t{worker} * ahead % blocks()) % blocks();
  }
};

}  // namespace shoal::schedule

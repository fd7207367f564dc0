// Words in which the builders write their programs: one factory an op, and a pen that numbers lanes and ops.
// Internal to the builders. Values; no threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

inline constexpr std::uint32_t kSends = 0, kReceives = 1;  // lanes of a member that does both at once
inline constexpr Site kInput{Buffer::input, 0};
inline constexpr Site kOutput{Buffer::output, 0};
inline Site window(std::uint32_t slot) { return {Buffer::scratch, slot}; }

Op send(std::uint32_t peer, std::uint32_t chunk, Site source);
Op receive(std::uint32_t peer, std::uint32_t peer_lane, std::uint32_t chunk, Site target);
Op receive_reduce(std::uint32_t peer, std::uint32_t peer_lane, std::uint32_t chunk, Site source, Site target);
Op fold(std::uint32_t chunk, std::vector<Site> sources, Site target);
Op copy(std::uint32_t chunk, Site source, Site target);

// One op that has been written: what others name in `after`.
struct Mark {
  std::uint32_t lane = 0, op = 0;
};
Op after(Op op, Mark mark, std::int32_t shift = 0);
Op completing(Op op);                                // the op after which the chunk is whole
Op stepping(Op op, std::int32_t chunk_step);         // in a loop: the next iteration speaks of chunk + chunk_step

// Writes the lanes of one program, rank by rank.
class Author {
 public:
  // `slots`: scratch windows a member needs. Throws Error{invalid_argument} unless 1 <= ranks <= kMaxRanks.
  Author(std::string name, Collective collective, std::uint32_t ranks, AddOrder order);

  void chunks(std::uint32_t count) { program_.chunks = count; }
  void shares(std::vector<std::uint32_t> of_chunks) { program_.shares = std::move(of_chunks); }
  void slots(std::uint32_t count) { program_.slots = count; }
  void servers(std::uint32_t count) { program_.servers = count; }
  void root(std::uint32_t rank);

  std::uint32_t lane(std::uint32_t rank);             // a new, empty lane of `rank`: its number
  Mark add(std::uint32_t rank, std::uint32_t lane, Op op, std::uint32_t times = 1);  // times 0: nothing is written
  Program take() { return std::move(program_); }

 private:
  Program program_;
};

// Programs in which every pair talks write a lane a pair: N x N of them.
inline constexpr std::uint32_t kMaxPairRanks = 512;
void check_pair_ranks(const std::string& name, std::uint32_t ranks);

// The program of one member: its input is its result.
Program alone(std::string name, Collective collective, AddOrder order);

inline std::uint32_t around(std::uint32_t rank, std::int64_t by, std::uint32_t ranks) {
  const std::int64_t n = ranks;
  return static_cast<std::uint32_t>(((static_cast<std::int64_t>(rank) + by) % n + n) % n);
}

}  // namespace shoal::collective

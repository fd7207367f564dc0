// A program with its loops unrolled: what verify() looks at. Internal to the verifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

inline constexpr std::uint32_t kNone = 0xffffffff;
inline constexpr std::uint32_t kMaxInstances = 1U << 18;  // of 256 members in a ring, or where every pair talks

struct Instance {  // one iteration of one op
  const Op* op = nullptr;
  std::uint32_t rank = 0, lane = 0, number = 0, iteration = 0;
  std::uint32_t peer = 0, chunk = 0;
};

// Lifetime: refers to the program. All numbers called `instance` index `instances`.
struct Unrolled {
  const Program& program;
  std::vector<Instance> instances;  // rank by rank, lane by lane, in the order in which they begin
  std::vector<std::vector<std::uint32_t>> after;  // [instance]: whom it waits for; iterations outside the loop are left out

  // Sends and receives, first in first out in each stream.
  std::vector<std::uint32_t> partner;             // [instance]: the other end, kNone for fold and copy
  // Scratch windows: the k-th write is the k-th read.
  std::vector<std::vector<std::uint32_t>> writer; // [instance][source]: who wrote it, kNone unless scratch
  std::vector<std::uint32_t> reader;              // [instance]: who reads what it writes to scratch, else kNone
  std::vector<std::uint32_t> earlier_write;       // [instance]: the write before it in the same window, else kNone
};

// Throws Error{invalid_argument} where a field is out of range, an `after` names nothing, a send meets no receive of the
// same chunk, a stream or window has two takers, or a window is read more or less often than written.
Unrolled unroll(const Program& program);

[[noreturn]] void refuse(const Program& program, const std::string& what);
[[noreturn]] void refuse(const Program& program, const Instance& at, const std::string& what);
std::string place(const Instance& at);  // "rank 1, lane 0, op 2, iteration 3"

// What the collective promises.
bool has_input(const Program& program, std::uint32_t rank, std::uint32_t chunk);
bool has_output(const Program& program, std::uint32_t rank, std::uint32_t chunk);

}  // namespace shoal::collective

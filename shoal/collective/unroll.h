// A program with its loops unrolled: what verify() looks at. Internal to the verifier.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

inline constexpr std::uint32_t kNone = 0xffffffff;
inline constexpr std::uint32_t kMaxInstances = 1U << 26;  // at once, of 4,096 members in a ring; at 20 bytes each, 1.4 GB
inline constexpr std::uint32_t kMaxLaidOut = 1U << 29;    // of 4,096 members in eight rings; numbers, without memory for each

struct Iterated {   // one op of one lane, and where its iterations lie among the instances
  const Op* op = nullptr;
  std::uint32_t rank = 0, lane = 0, number = 0;    // lane: of this rank; number: in this lane
  std::uint32_t row = 0;                           // the lane among those of all ranks
  std::uint32_t first = 0, stride = 1, times = 0;  // iteration i is instance first + i*stride
  std::uint32_t windows = 0, first_read = 0;       // scratch windows that an iteration reads; where those of iteration 0 lie in `writers`
};

struct Instance {   // one iteration of one op
  std::uint32_t op = 0;           // index of Unrolled::ops
  std::uint32_t chunk = 0;
  std::uint32_t partner = kNone;  // of a send or receive: the instance at the other end, first in first out in each stream
};

// The ops with the numbers of their iterations, before any is unrolled. Lifetime: refers to the program.
struct LaidOut {
  const Program& program;
  std::vector<Iterated> ops;             // rank by rank, lane by lane
  std::vector<std::uint32_t> first_row;  // [rank]: its lane 0 among the lanes of all ranks
  std::vector<std::uint32_t> row_op;     // [row]: its op 0 among `ops`; one more at the end
  std::vector<std::uint32_t> row_begin;  // [row]: its first instance; one more at the end
  std::uint32_t reads = 0;               // of scratch windows, by all iterations

  std::uint32_t rows() const { return static_cast<std::uint32_t>(row_begin.size() - 1); }
  std::uint32_t size() const { return row_begin.back(); }  // instances
  std::span<const Iterated> of_row(std::uint32_t row) const { return std::span(ops).subspan(row_op[row], row_op[row + 1] - row_op[row]); }
  // The op that an `after` of this rank names; nullptr: there is none.
  const Iterated* waited(std::uint32_t rank, const After& wait) const {
    const std::uint32_t row = first_row[rank] + wait.lane;
    if (wait.lane >= program.lanes[rank].size() || wait.op >= row_op[row + 1] - row_op[row]) return nullptr;
    return &ops[row_op[row] + wait.op];
  }
  // Whom iteration `iteration` of an op waits for by one `after`: kNone where that iteration is outside its loop.
  static std::uint32_t instance_of(const Iterated& waited, std::uint32_t iteration, const After& wait) {
    const std::int64_t wanted = std::int64_t{iteration} + wait.shift;
    return wanted < 0 || wanted >= waited.times ? kNone : waited.first + waited.stride * static_cast<std::uint32_t>(wanted);
  }
};

// All numbers called `instance` index `instances`.
struct Unrolled : LaidOut {
  std::vector<Instance> instances;       // in the order of `ops`, those of a lane in the order in which they begin

  // Scratch windows: the k-th write is the k-th read. Empty where a program has none.
  std::vector<std::uint32_t> writers;    // by (op, iteration, scratch source): who wrote it
  std::vector<std::uint32_t> reader;     // [instance]: who reads what it writes to scratch, else kNone
  std::vector<std::uint32_t> earlier_write;  // [instance]: the write before it in the same window, else kNone

  const Iterated& place(std::uint32_t instance) const { return ops[instances[instance].op]; }
  const Op& op(std::uint32_t instance) const { return *place(instance).op; }
  std::uint32_t iteration(const Iterated& at, std::uint32_t instance) const { return (instance - at.first) / at.stride; }
  std::uint32_t reader_of(std::uint32_t instance) const { return reader.empty() ? kNone : reader[instance]; }
  std::uint32_t writer_of(std::uint32_t instance, std::uint32_t window) const {  // of the window-th scratch source
    const Iterated& at = place(instance);
    return writers[at.first_read + iteration(at, instance) * at.windows + window];
  }
  // Whom an instance waits for by the k-th `after` of its op: kNone where that iteration is outside its loop.
  std::uint32_t after(std::uint32_t instance, std::size_t k) const {
    const Iterated& at = place(instance);
    const After& wait = at.op->after[k];
    return instance_of(*waited(at.rank, wait), iteration(at, instance), wait);
  }
};

inline bool receives(const Op& op) { return op.kind == OpKind::receive || op.kind == OpKind::receive_reduce; }
inline bool writes_scratch(const Op& op) { return op.kind != OpKind::send && op.target.buffer == Buffer::scratch; }
inline bool writes_output(const Op& op) { return op.kind != OpKind::send && op.target.buffer == Buffer::output; }

inline bool transfers(const Op& op) { return op.kind == OpKind::send || receives(op); }

// Throws Error{invalid_argument} where a field is out of range, Error{unsupported} beyond kMaxLaidOut.
LaidOut lay_out(const Program& program);
// Throws also where an `after` names nothing, or a lane speaks of chunks of two kinds (Program::by_switches); Error{unsupported} beyond kMaxInstances. No instance
// has a partner, and no window a reader.
Unrolled unmatched(const Program& program);
// Throws also where a send meets no receive of the same chunk, a stream or window has two takers, or a window is read more or less often than written.
Unrolled unroll(const Program& program);

[[noreturn]] void refuse(const Program& program, const std::string& what);
[[noreturn]] void refuse(const Unrolled& program, std::uint32_t instance, const std::string& what);
std::string words(const Unrolled& program, std::uint32_t instance);  // "rank 1, lane 0, op 2, iteration 3"

// What the collective promises.
bool has_input(const Program& program, std::uint32_t rank, std::uint32_t chunk);
bool has_output(const Program& program, std::uint32_t rank, std::uint32_t chunk);

}  // namespace shoal::collective

// A collective as data: one value that is built, verified, priced, shown and run.
//
// Words. A *chunk* is a numbered part of the data, the same number on every member; how many elements it has is
// said at run time (Layout, run.h). A *slice* is what the runner moves at once, a run-time cut of a chunk;
// slicing never changes a result. A *site* is where a chunk lies on one member. Loops over ranks stay loops:
// iteration i of an op speaks to peer (peer + i*peer_step) mod ranks about chunk (chunk + i*chunk_step) mod chunks,
// so a ring over 4,096 members is seven ops a member. No byte moves here (run.h does that). Immutable; share across
// threads.
//
// Order. The slices of a *lane* begin in order: op by op, iteration by iteration. A slice may begin before the one
// in front of it is done; whoever needs another slice to be done, of this lane or another, says so in `after`.
// A *stream* is what one lane of one member sends to one other member: (from, sender's lane, to). It is first in,
// first out, and taken by one lane only. Lanes run side by side; among ready ones the lower number begins first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::collective {

inline constexpr std::uint32_t kMaxRanks = 4096;

enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all };

// In which order contributions are added, per element. `none` where nothing is added.
enum class AddOrder : std::uint8_t {
  none,
  left_fold,  // ((g0 + g1) + g2) + ...: rank order, whatever the size
  rotated,    // ring: begins with the rank after the chunk's owner and ends with the owner
  tree,       // as the program's tree says; fixed by the program
};

enum class Buffer : std::uint8_t {
  input,    // the caller's contribution; never written
  output,   // the caller's result; may be the same memory as input only if every program step allows it (verify.h)
  scratch,  // a window of a few slices that this member owns: its k-th slice written is its k-th slice read, and the
            // writer waits when the window (two slices or more) is full
};
struct Site {
  Buffer buffer = Buffer::input;
  std::uint32_t slot = 0;  // scratch only: which window; input and output find a chunk by its number
  bool operator==(const Site&) const = default;
};

enum class OpKind : std::uint8_t {
  send,            // source -> peer
  receive,         // peer -> target
  receive_reduce,  // target = source + what comes from peer
  fold,            // target = ((sources[0] + sources[1]) + sources[2]) ...: one pass
  copy,            // target = source
};

// Waits for op `op` of lane `lane`, iteration (own iteration + shift). Iterations outside the loop count as done.
// If both speak of the same chunk, slice waits for slice; else the whole op is waited for.
struct After {
  std::uint32_t lane = 0, op = 0;
  std::int32_t shift = 0;
};

struct Op {
  OpKind kind = OpKind::send;
  std::uint32_t peer = 0;             // a rank; unused by fold and copy
  std::int32_t peer_step = 0;
  std::uint32_t peer_lane = 0;        // receive, receive_reduce: the lane of the peer that sends
  std::uint32_t chunk = 0;
  std::int32_t chunk_step = 0;
  std::vector<Site> sources;          // send, receive_reduce, copy: one; fold: one or more, in the order of addition
  Site target;                        // all but send
  bool completes = false;             // after this op the chunk holds all contributions: the mean is divided here, once
  std::vector<After> after;
};

struct Loop { std::uint32_t times = 1; std::vector<Op> ops; };
using Lane = std::vector<Loop>;       // ops are numbered through the lane's loops, from 0

// What a program made for one topology claims of itself there; check_certificate() (certificate.h) checks it.
struct Certificate {
  std::string topology;               // its digest
  double rate = 0, bound = 0;         // of the data, in the topology's unit: that of the program, and what none exceeds
  std::vector<double> prices;         // of the network's arcs: the proof of the bound (packing/pack.h)
  bool operator==(const Certificate&) const = default;
};

struct Program {
  std::string name;                   // "ring", "direct", ...
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 1;
  // all_to_all: chunk s*ranks+d goes from s to d. Where every rank owns a part (reduce_scatter, all_gather, gather, scatter): ranks, or
  // a multiple, chunks c, c + ranks, c + 2 ranks, ... being the part of rank c.
  std::uint32_t chunks = 1;
  // How many elements the chunks have beside each other, within the data or the part they make up; empty: equally many. A chunk of
  // share 0 has none, and no op need speak of it.
  std::vector<std::uint32_t> shares;
  // Chunks that pass switches even where a link leads straight to the peer: they have a channel of their own, as PCIe beside NVLinks. As many as
  // chunks, or empty: none. A lane speaks of chunks of one kind.
  std::vector<bool> by_switches;
  std::uint32_t slice_bytes = 0;      // what the runner moves at once, where that was tuned (chunk_size.h); 0: as its caller says
  std::uint32_t root = 0;             // of rooted collectives
  std::uint32_t slots = 0;            // scratch windows a member needs
  std::uint32_t servers = 0;          // of all_reduce: the last ranks, which contribute nothing and end with their own chunk alone
  AddOrder order = AddOrder::none;
  std::vector<std::vector<Lane>> lanes;  // [rank][lane]
  std::optional<Certificate> certificate;  // of programs made for a topology
};

// Rank that must end with (reduce_scatter, all_to_all, scatter) or begins with (all_gather, gather) chunk c; the root of
// broadcast and reduce; where all_reduce completes it.
std::uint32_t owner(const Program& program, std::uint32_t chunk);
bool adds(Collective collective);               // all_reduce, reduce_scatter, reduce
bool has_root(Collective collective);           // broadcast, reduce, gather, scatter
bool in_parts(Collective collective);           // every rank owns a part: reduce_scatter, all_gather, gather, scatter
inline bool is_empty(const Program& program, std::uint32_t chunk) { return !program.shares.empty() && program.shares[chunk] == 0; }
inline bool passes_switches(const Program& program, std::uint32_t chunk) { return !program.by_switches.empty() && program.by_switches[chunk]; }
std::uint32_t workers(const Program& program);  // ranks that contribute: the first ones

// Whom, and of which chunk, iteration `iteration` of an op speaks.
std::uint32_t peer_of(const Program& program, const Op& op, std::uint32_t iteration);
std::uint32_t chunk_of(const Program& program, const Op& op, std::uint32_t iteration);

const char* name(Collective collective);  // "all_reduce", as written in JSON and on command lines
std::optional<Collective> collective_called(const std::string& text);  // also allreduce, all-reduce
inline constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                                              Collective::reduce,     Collective::gather,         Collective::scatter,    Collective::all_to_all};
const char* name(AddOrder order);
const char* name(OpKind kind);
const char* name(Buffer buffer);

std::string to_json(const Program& program);
// Bounded, nothing trusted: what it gives has the form of a program, and only verify() says whether it is one. Throws Error{invalid_argument} beginning
// with `where`, a file's name, and the place in it.
Program program_from_json(const std::string& text, const std::string& where = {});

}  // namespace shoal::collective

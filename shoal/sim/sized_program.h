// A program with sizes, as the simulator reads it: all ranks' lanes laid out flat, loops kept. Where an op stands, how many slices
// may go together, and who must look again after whom is arithmetic here; nothing happens (run_program.h). Immutable.
//
// A *run* is a row of slices of one lane to or from one peer that differ in nothing but which bytes they are: the slices of one op
// iteration; or all iterations of a loop of one op, if every chunk of the program is a single slice. Runs are moved whole as far as they
// are ready, so that a step that speaks of 128 small chunks costs no more than one that speaks of a large one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/sim/costs.h"

namespace shoal::sim {

struct Position {                 // a slice of a lane; the end of the lane has the loop behind its last
  std::uint32_t loop = 0, iteration = 0, op = 0, slice = 0;  // loop: of all lanes; op: in its loop
};

class SizedProgram {
 public:
  // Checks that every number of the program names something; not that it does what it says (collective::verify).
  // chunk_bytes: by chunk. Throws Error{invalid_argument}, and Error{unsupported} for more than 2^30 ops.
  SizedProgram(std::shared_ptr<const collective::Program> program, std::vector<double> chunk_bytes, const Costs& costs);

  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Wait {                   // until op `op` of loop `loop` of lane `lane` is done, in iteration own + shift
    std::uint32_t lane, loop, op, times;
    std::int32_t shift;
  };
  struct Stream {                 // what one lane sends to one rank, and the lane that takes it
    std::uint32_t sender, receiver, to;
  };

  const collective::Program& program() const { return *program_; }
  double message_bytes(std::uint32_t lane) const { return message_bytes_[lane]; }  // its slices travel together up to this
  std::uint32_t in_flight(collective::OpKind kind) const {     // slices of a lane under way at once, sent or received
    return kind == collective::OpKind::send ? sending_ : receiving_;
  }
  std::uint32_t window() const { return window_; }

  std::size_t steps() const { return steps_.size(); }          // ops of all lanes

  // Lanes, of all ranks.
  std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }
  std::uint32_t first_lane(std::uint32_t rank) const { return first_lane_[rank]; }  // rank may be ranks
  std::uint32_t rank_of(std::uint32_t lane) const { return lanes_[lane].rank; }
  std::span<const std::uint32_t> woken_by(std::uint32_t lane) const;  // lanes that may go on when this one has
  std::string place(std::uint32_t lane, const Position& at) const;    // "rank 1, lane 0, op 2, iteration 3"

  // Streams, numbered.
  std::span<const Stream> streams() const { return streams_; }

  // Where in a lane.
  Position begin(std::uint32_t lane) const;
  bool at_end(std::uint32_t lane, const Position& at) const { return at.loop == end(lane); }
  std::uint32_t end(std::uint32_t lane) const { return lanes_[lane].end; }   // the loop behind its last
  const collective::Op& op(const Position& at) const { return *step(at).op; }
  collective::OpKind kind(const Position& at) const { return step(at).kind; }
  bool reads_windows(const Position& at) const { return program_->slots > 0 && step(at).reads_windows; }
  bool writes_window(const Position& at) const { return step(at).writes_window; }
  std::uint32_t stream(std::uint32_t lane, const Position& at) const;    // of a send or receive
  std::uint32_t chunk(const Position& at) const {
    const Step& here = step(at);
    const std::int64_t chunks = program_->chunks;
    std::int64_t which = here.chunk + std::int64_t{here.chunk_step} * at.iteration;  // most need neither the op nor a division
    if (which < 0) which += chunks;
    if (which >= 0 && which < chunks) return static_cast<std::uint32_t>(which);
    return collective::chunk_of(*program_, *here.op, at.iteration);
  }
  void fetch(const Position& at) const {        // into the processor's cache
    if (single_ops_) __builtin_prefetch(steps_.data() + at.loop);
  }
  // Slices from here to the end of the run; 0 where the chunk is empty.
  std::uint32_t run_length(const Position& at) const {
    const Step& here = step(at);
    return here.is_run ? here.times - at.iteration : slices(chunk(at)) - at.slice;
  }
  double run_bytes(const Position& at, std::uint32_t slices) const;
  std::uint32_t run_messages(const Position& at, std::uint32_t slices) const;  // slices of the real runner
  void advance(std::uint32_t lane, Position& at, std::uint32_t slices) const;  // inside the run, or over an empty op with 0

  // How many of the next `slices` slices of the run have all that they wait for, where other lanes' oldest slices that are not
  // done stand at oldest[lane].
  template <class OldestOf>
  std::uint32_t ready(const Position& at, std::uint32_t slices, const OldestOf& oldest) const;

 private:
  struct alignas(64) Step {     // an op; what is asked often lies here, in one line of the processor's cache
    const collective::Op* op;
    std::uint32_t first_wait = 0, waits = 0;
    Wait first{};                       // waits_[first_wait], where there is one: few have more
    std::uint32_t stream = kNone;       // kNone: of several, by iteration
    std::uint32_t chunk = 0;
    std::int32_t chunk_step = 0;
    std::uint32_t times = 1;            // of its loop
    collective::OpKind kind = collective::OpKind::send;
    bool reads_windows = false, writes_window = false;
    bool is_run = false;                // with all iterations of its loop
    std::uint8_t stride = kNoStride;    // of runs: which of strides_ its chunks follow each other by
  };
  static constexpr std::uint8_t kNoStride = 0xff;
  struct Stride {                       // for the bytes of a run without its chunks: sums over every `by`-th
    std::uint32_t by;
    std::vector<double> bytes;          // [chunk]: of this one, and of those that are `by`, 2 `by`, ... before it
  };
  struct LoopAt {
    std::uint32_t first, count, times;
  };
  struct LaneAt {
    std::uint32_t rank, first, end;  // loops
  };
  // Where every loop has one op, they have the same numbers: one look into memory less.
  const Step& step(const Position& at) const { return steps_[single_ops_ ? at.loop : loops_[at.loop].first + at.op]; }
  std::uint32_t slices(std::uint32_t chunk) const { return slices_[chunk]; }
  void lay_out();
  void find_sizes(const Costs& costs);
  void find_runs();
  void find_waits();
  void find_streams();
  void find_woken();
  void skip_empty_loops(std::uint32_t lane, Position& at) const;
  void next_op(std::uint32_t lane, Position& at) const;
  [[noreturn]] void refuse(std::uint32_t lane, std::uint32_t op, const std::string& what) const;

  std::shared_ptr<const collective::Program> program_;
  std::vector<double> chunk_bytes_;
  std::vector<Stride> strides_;
  std::vector<std::uint32_t> slices_, messages_;  // by chunk; of each slice
  std::vector<double> message_bytes_;             // by lane
  std::uint32_t sending_ = 1, receiving_ = 1, window_ = 2;
  bool single_slices_ = false;                    // every chunk is one
  bool single_ops_ = true;                        // every loop has one, and is done
  std::uint32_t same_messages_ = 0;               // of every chunk; 0: they differ
  std::vector<std::uint32_t> first_lane_;
  std::vector<LaneAt> lanes_;
  std::vector<LoopAt> loops_;
  std::vector<Step> steps_;
  std::vector<Wait> waits_;
  std::vector<Stream> streams_;                   // by (sender, to)
  std::vector<std::uint32_t> first_woken_, woken_;
};

template <class OldestOf>
std::uint32_t SizedProgram::ready(const Position& at, std::uint32_t slices, const OldestOf& oldest) const {
  const Step& here = step(at);
  const bool by_iteration = here.is_run;
  std::int64_t least = slices;
  for (std::uint32_t i = 0; i < here.waits; ++i) {
    const Wait& wait = i == 0 ? here.first : waits_[here.first_wait + i];
    const Position& done = oldest(wait.lane);   // everything before it
    const std::int64_t first = std::int64_t{at.iteration} + wait.shift;
    if (done.loop > wait.loop || first >= wait.times) continue;
    // Iterations of the awaited op that are done: those before `whole`.
    std::int64_t whole = 0;
    if (done.loop == wait.loop) whole = std::int64_t{done.iteration} + (done.op > wait.op);
    if (by_iteration) {
      // Iterations before 0 and after the last count as done.
      if (whole < wait.times) least = std::min(least, std::max(whole, std::int64_t{0}) - first);
      continue;
    }
    if (first < whole) continue;
    const bool under_way = done.loop == wait.loop && done.op == wait.op && done.iteration == first;
    if (!under_way || chunk(done) != chunk(at)) return 0;
    least = std::min(least, std::int64_t{done.slice} - at.slice);
  }
  return static_cast<std::uint32_t>(std::max(least, std::int64_t{0}));
}

}  // namespace shoal::sim

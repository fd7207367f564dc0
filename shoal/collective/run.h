// Running a verified program over a transport: slices flow lane by lane, each added while it is in L2 and sent on
// at once. One Runner serves all operations of a group of members.
//
// Threads: everything but run() happens on the transport's loop. Memory of Buffers stays valid until done has run; it runs
// exactly once, on the loop and never inside start(), and then nothing touches that memory any more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/layout.h"
#include "shoal/collective/verify.h"
#include "shoal/core/dtype.h"
#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::collective {

struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// result = (sum over ranks of prescale_r * input_r) / divisor. 1 and 1 leave the bits of a plain sum; equal prescales are
// left out by the caller, so that equal weights give the plain mean.
struct Scaling {
  double prescale = 1, divisor = 1;
};

struct Run {
  DType type = DType::f32;
  ReduceOp op = ReduceOp::sum;         // average: divides by ranks at `completes`
  Scaling scaling;
  std::uint32_t slice_bytes = 128 * 1024;
  net::Priority priority;
  std::uint64_t operation = 0;         // unique in the transport while open, equal on all members
  std::string label;                   // for errors and events: "all-reduce of fc1.weight"
};

// At which place of a group's members a rank is. Throws Error{invalid_argument} where it is none of them.
std::uint32_t place_in(const std::vector<net::Rank>& members, net::Rank rank);

class Runner {
 public:
  // `members`: transport ranks of this group, by group rank. The transport outlives the runner.
  Runner(net::Transport& transport, std::vector<net::Rank> members);
  ~Runner();                            // operations still open end with Error{cancelled}

  std::uint32_t rank() const;           // in the group
  std::uint32_t size() const;
  const std::vector<net::Rank>& members() const;  // transport ranks, by group rank
  net::Transport& transport();
  // Some of its members, this one among them, as a group of their own: of this one's operations, and ended by what ends this one.
  std::shared_ptr<Runner> among(std::vector<net::Rank> members);

  // Throws Error{invalid_argument} where program or layout are for another group; then done never runs. Input and output
  // may be one memory if program.in_place().
  void start(const Verified& program, const Layout& layout, Buffers buffers, const Run& run, net::Done done);
  // The same from any thread but the loop: begun and waited for, see started.h.
  void run(const Verified& program, const Layout& layout, Buffers buffers, const Run& run, Instant deadline);
  // Ends one operation with `why` on this member (a deadline); its peers' are left to their own deadlines.
  void cancel(std::uint64_t operation, const net::Failure& why);
  void end(const net::Failure& why);    // all that are open, and later ones as they begin
  // For error lines: what open operations wait for, e.g. "all-reduce of fc1.weight: 3 of 12 slices from rank 2".
  std::vector<std::string> waiting() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A runner ends on the loop, where its operations are: for who lets go of one on another thread. Waits until it has ended. nullptr: does nothing.
void let_go(std::shared_ptr<Runner>& runner);

}  // namespace shoal::collective

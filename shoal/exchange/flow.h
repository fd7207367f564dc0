// How one unit travels in an iteration, by its way (way.h). A flow is made once for a plan and serves all its iterations; it owns
// the memory on the way and whatever of one iteration the next one needs.
//
// An iteration:
//   take(place, own)       the caller: once for each of the unit's tensors, in any order; the last one leaves the flow ready to start
//   start(departure, done) the loop: the bytes move. Once the roll call has told everybody's weight
//   mean(place)            the caller, when done has run without a failure: what the optimizer is to see; valid until the next take()
// Arithmetic belongs into take() and mean(), where it costs nobody else's time; the loop moves and adds slices.
//
// Memory: what take() is given stays as it is, and there, until the iteration is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/factor/factor.h"

namespace shoal::exchange {

// A table's rows that have a gradient: distinct, ascending. The memory is the caller's.
struct Rows {
  std::uint64_t count = 0;
  const std::int64_t* index = nullptr;  // count
  const std::byte* values = nullptr;    // count x width, contiguous
};

// Of a layer that a group of members shares (strips.h): the gradient of this member's strip, a sum over the rows of the whole group, each with
// its member's weight. The memory is the caller's.
struct Strip {
  const std::byte* values = nullptr;  // rows of the strip x inputs, contiguous; nullptr: no member of the group had any
  const std::byte* rest = nullptr;    // outputs x inputs, of this member alone: what no row explains; nullptr: nothing
};

// What a member has of one tensor: nothing, all elements, a layer's pair, a table's rows, its strip. And their mean: of a strip all elements of it.
using Contribution = std::variant<std::monostate, const std::byte*, factor::Pair, Rows, Strip>;
using Mean = std::variant<const std::byte*, const factor::Gathered*, const Rows*>;

struct Departure {
  collective::Run run;          // the elements' type, slices, priority, first operation, label; this member's scaling
  std::vector<double> weights;  // of all members by rank; empty: all are equal
};

// Starts programs for one flow and counts what this member hands to the transport for them.
class Courier {
 public:
  explicit Courier(collective::Runner& runner) : runner_(runner) {}

  collective::Runner& runner() { return runner_; }
  void start(const collective::Verified& program, const collective::Layout& layout, collective::Buffers buffers, const collective::Run& run,
             net::Done done) {
    start_among(runner_, program, layout, buffers, run, std::move(done));
  }
  // Among the members of another runner.
  void start_among(collective::Runner& runner, const collective::Verified& program, const collective::Layout& layout, collective::Buffers buffers,
                   const collective::Run& run, net::Done done);
  // That the member in this place of the runner said what none can that runs the same code.
  net::Failure mismatch(std::size_t place, const std::string& said) const;
  std::uint64_t sent() const { return sent_; }
  void count_anew() { sent_ = 0; }

 private:
  collective::Runner& runner_;
  std::uint64_t sent_ = 0;
};

template <class T>
collective::Buffers buffers(const std::vector<T>& input, std::vector<T>& output) {
  return {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())};
}

// Numbers that the next iteration needs beside the next gradients, such as what was left out so far.
struct Kept {
  std::string name;  // "residual"
  DType type = DType::f32;
  std::uint64_t count = 0;
  std::byte* data = nullptr;
};

class Flow {
 public:
  explicit Flow(collective::Runner& runner) : courier_(runner) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  virtual std::uint64_t operations() const { return 1; }  // of the transport that a start() may take, from Run::operation on
  virtual void take(std::size_t place, const Contribution& own) = 0;
  virtual void start(const Departure& departure, net::Done done) = 0;
  virtual void cancel(const net::Failure&) {}  // the loop: ends what the road's runner does not know of
  virtual Mean mean(std::size_t place) = 0;
  virtual std::shared_ptr<const void> memory() const = 0;  // holds that of the last mean, also beyond the flow
  // Read and written by the caller, between iterations. Every member has its own.
  virtual std::vector<Kept> kept() { return {}; }

  Courier& courier() { return courier_; }  // the loop's

 private:
  Courier courier_;
};

// By a way that is owned(): the mean is that of the own part.
class OwnedFlow : public Flow {
 public:
  using Flow::Flow;
  // The loop: the caller has stepped its part of the parameter, which goes to everybody, as theirs come into `whole`.
  virtual void give_back(const std::byte* part, std::byte* whole, const collective::Run& run, net::Done done) = 0;
};

}  // namespace shoal::exchange

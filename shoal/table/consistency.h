// How stale a read may be: one value per table.
//
// Clocks. A worker at clock c has completed c units of work: c calls of tick(). What it adds meanwhile has timestamp c. The age of a row is
// the largest a such that it holds all increments of all workers with timestamps below a. A policy answers the same few questions, below
// the values: which age a reader at clock c needs, how far a worker may run ahead, when what is added leaves, and who sends rows that
// changed. Values; threads: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

namespace shoal::table {

using Clock = std::int64_t;
inline constexpr Clock kNever = std::numeric_limits<Clock>::min();  // older than any age
inline constexpr Clock kLastClock = Clock{1} << 62;

// Everybody sees all of every clock before its own, and nothing of its own clock but what it added itself. Sums are formed in the order of
// (clock, worker): the same bits in every run. With `backups` a clock is complete without that many of the workers; what they add to it
// later is dropped and counted, and they go on at the newest clock (Chen et al., "Revisiting Distributed Synchronous SGD", 2016).
struct Bsp {
  unsigned backups = 0;
};
// Stale synchronous parallel (Ho et al., NIPS'13): a copy may lack the last `staleness` clocks; rows are fetched when they are too old.
struct Ssp {
  unsigned staleness = 0;
};
// Eager SSP (Dai et al., AAAI'15): the same bound, but servers push rows that changed to whoever has read them.
struct Essp {
  unsigned staleness = 0;
};
// Clock-bounded asynchronous parallel (Wei et al., "Consistency models for parameter servers", 2013): the bound of SSP, but what is added
// leaves as soon as the server has what left before, and is shown as soon as it arrives, whole clock or not.
struct Cap {
  unsigned staleness = 0;
};
// Value-bounded asynchronous parallel (the same paper): not clocks but values say how far copies may be apart. For each row a worker sums the
// magnitudes (max norm) of what it has added and not all readers have; an increment that would bring the sum above v waits, unless it is
// alone. v shrinks: bound / sqrt(t) in the t-th clock of the slowest worker (Dai et al., AAAI'15). With u the magnitude of the largest
// increment and m = max(u, v), no element of two copies differs by more than m times the number of workers. `strong`: servers, too,
// withhold updates while what some have and others have not would sum to more than v; then by no more than 3 m. Where the table's rule
// steps, a gradient's magnitude is that of the step which it makes at most.
struct Vap {
  double bound = 1;
  bool strong = false;
};
// Both bounds: that of Cap and that of Vap.
struct Cvap {
  unsigned staleness = 0;
  double bound = 1;
  bool strong = false;
};
// Approximate synchronous parallel (Gaia; Hsieh et al., NSDI'17): ESSP, but of what a worker has added to a row only what is significant
// leaves, once it would move some element by more than the t-th clock's threshold / sqrt(t), relative to the row's root mean square. The rest
// stays with the worker, for at most `staleness` clocks. So a read has all of the clocks before the last two times `staleness`, and of the
// first half of these all that was significant: ages count what has left.
struct Significance {
  double threshold = 0.01;
  unsigned staleness = 0;
};
// Dynamic SSP (Zhao et al., ICDCS'19): ESSP whose staleness is chosen at each tick, from `least` to `most`, so that waits are short (gate.h).
struct Dssp {
  unsigned least = 0, most = 0;
};
// Probabilistic SSP (Wang et al., 2017): before it reads a worker waits only for `sampled` others, drawn anew for each clock, until they are
// at most `staleness` clocks behind. No read has a bound, but for those workers; waiting grows with `sampled`, not with all workers.
struct Pssp {
  unsigned staleness = 0, sampled = 1;
};
// No bound: servers push, nobody waits.
struct Async {};

using Consistency = std::variant<Bsp, Ssp, Essp, Cap, Vap, Cvap, Significance, Dssp, Pssp, Async>;

// "bsp", "bsp:1" (with one backup), "ssp:3", "essp:3", "cap:3", "vap:0.5", "vap-strong:0.5", "cvap:3:0.5", "cvap-strong:3:0.5",
// "significance:0.01:3", "dssp:1:5", "pssp:3:2", "async".
// Throws Error{invalid_argument} that lists them.
Consistency consistency_from(const std::string& text);
std::string name(const Consistency& consistency);

// The age that a row needs to be read at `clock`, at least.
Clock needed_age(const Consistency& consistency, Clock clock);
// How many of the workers a clock is complete without.
unsigned backups(const Consistency& consistency);
// How many clocks a worker may be ahead of the slowest after its tick; nullopt: any. One more than reads allow, so that who only writes is
// bounded, too.
std::optional<Clock> widest_gap(const Consistency& consistency);
// Whether servers send what changed unasked.
bool pushes(const Consistency& consistency);
// Whether a round of these may leave some for the next (untold.h): where each row is good by itself.
bool divides_rounds(const Consistency& consistency);
// Whether they send it when it arrived, not when a clock is complete.
bool pushes_at_once(const Consistency& consistency);
// Whether what is added leaves before its clock is complete.
bool leaves_at_once(const Consistency& consistency);
// How much of a row, in magnitudes, may have been added by a worker and not be everybody's, when the slowest is at `clock`; nullopt: any.
std::optional<double> value_bound(const Consistency& consistency, Clock clock);
// Whether servers hold updates back for it, too.
bool withholds(const Consistency& consistency);
// Whether servers tell each worker's clock, not the slowest's alone.
bool tells_each_clock(const Consistency& consistency);
// What moves no element of its row by more than that, relative to the row's root mean square, need not leave when the slowest is at
// `clock`; nullopt: all leaves.
std::optional<double> insignificant(const Consistency& consistency, Clock clock);
// For how many clocks it may stay.
Clock longest_stay(const Consistency& consistency);
// Whether readers see whole clocks only, each added in the order of workers.
bool whole_clocks(const Consistency& consistency);
// Whether copies of pushed rows are as good by `next` as they were by `before`: not where nothing is pushed, nor where all are to see the same bits, which
// columns have in the order in which increments came to each copy.
bool keeps_copies(const Consistency& before, const Consistency& next);
// Whether what a worker adds belongs to its clock; if not, it is part of the row as soon as it arrives.
bool clocked(const Consistency& consistency);

}  // namespace shoal::table

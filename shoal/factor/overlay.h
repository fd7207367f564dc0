// Who passes on what to whom, where not every member sends to every other: a member sends to a few *targets*, and these relay. A message
// takes one way to each member, along a tree for each origin that all members know; so it arrives once, and in its origin's order. All together
// send what they would without relays, for each message passes size - 1 links. What is saved is connections in use, and bytes on slow links:
// these are crossed once, and what has crossed is relayed behind them.
//
//   full     everybody sends to everybody, without relays
//   halton   to rank + P/2, + P/4, + 3P/4, + P/8, ...: about log2 P targets, spread evenly (MALT; Li et al., EuroSys'15)
//   fitted   to so many targets, chosen by measured costs so that what anybody sends is soon with all and keeps links busy for the least time
//            (after Xie et al., UAI 2016, whose optimiser is not published: here by exchanging one target after another while that shrinks)
//
// Trees grow link by link: by one of the cheapest kind, for all members send at once, and what is slow is shared; costs of one kind are within a
// factor of two. Of these by the one over which somebody has the message soonest, where a member sends to one after another (Bhat, Raghavendra and
// Prasanna, "Efficient collective communication in distributed heterogeneous systems", ICDCS'99: earliest completing edge first).
//
// Values; threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shoal::factor {

class Overlay {
 public:
  using Rank = std::uint32_t;
  using Cost = std::function<double(Rank from, Rank to)>;  // of sending one message over that link, in seconds; above zero

  static Overlay full(Rank size);
  static Overlay halton(Rank size);
  // targets: of each member, at least 1. All members must pass the same costs.
  static Overlay fitted(Rank size, Rank targets, const Cost& cost);

  Rank size() const { return static_cast<Rank>(targets_.size()); }
  std::span<const Rank> targets(Rank rank) const { return targets_[rank]; }
  // To whom `at` passes on what `origin` sent; for at = origin: to whom it sends.
  std::span<const Rank> next(Rank origin, Rank at) const { return next_[origin * size() + at]; }
  // From whom `at` has what `origin` sent.
  Rank before(Rank origin, Rank at) const { return before_[origin * size() + at]; }
  unsigned diameter() const;  // the most links between two members
  // Of one message from every member, summed over origins and members: when it is there, and how long links are busy with it. Seconds, as costs.
  double total() const { return total_; }

 private:
  Overlay(std::vector<std::vector<Rank>> targets, const Cost& cost, bool relays);
  std::vector<std::vector<Rank>> targets_;
  std::vector<std::vector<Rank>> next_;  // by origin and member
  std::vector<Rank> before_;
  std::vector<unsigned> links_;
  double total_ = 0;
};

}  // namespace shoal::factor

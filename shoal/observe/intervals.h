// Spans of time as a set: when something, of whatever many things, was under way. Nanoseconds; a value.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/core/time.h"

namespace shoal::observe {

class Intervals {
 public:
  struct Span {
    std::int64_t begin, end;
  };

  void add(Instant begin, Instant end);           // begin <= end; any order
  double seconds() const;                         // of the union
  double overlap(Instant begin, Instant end) const;     // seconds of the union inside of [begin, end)
  double overlap(const Intervals& other) const;   // seconds in both
  // The union: disjoint, in order.
  const std::vector<Span>& spans() const;

 private:
  void join() const;

  // Added spans are joined when somebody asks; invariant where joined_: disjoint, in order, before_[i] is the length of
  // all spans before span i.
  mutable std::vector<Span> spans_;
  mutable std::vector<std::int64_t> before_;
  mutable bool joined_ = true;
};

}  // namespace shoal::observe

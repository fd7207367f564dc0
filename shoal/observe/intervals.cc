#include "shoal/observe/intervals.h"

#include <algorithm>

namespace shoal::observe {
namespace {

double as_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

void Intervals::add(Instant begin, Instant end) {
  if (begin == end) return;
  spans_.push_back({begin.time_since_epoch().count(), end.time_since_epoch().count()});
  joined_ = false;
}

const std::vector<Intervals::Span>& Intervals::spans() const {
  join();
  return spans_;
}

double Intervals::seconds() const {
  join();
  return spans_.empty() ? 0 : as_seconds(before_.back() + spans_.back().end - spans_.back().begin);
}

double Intervals::overlap(Instant begin, Instant end) const {
  join();
  // Length of the union before a point.
  const auto length_before = [this](std::int64_t point) -> std::int64_t {
    const auto after =
        std::partition_point(spans_.begin(), spans_.end(), [point](const Span& span) { return span.begin < point; });
    if (after == spans_.begin()) return 0;
    const Span& last = *(after - 1);
    const auto index = static_cast<std::size_t>(after - 1 - spans_.begin());
    return before_[index] + std::min(point, last.end) - last.begin;
  };
  return as_seconds(length_before(end.time_since_epoch().count()) - length_before(begin.time_since_epoch().count()));
}

double Intervals::overlap(const Intervals& other) const {
  double sum = 0;
  for (const Span& span : other.spans()) {
    sum += overlap(Instant(Nanoseconds(span.begin)), Instant(Nanoseconds(span.end)));
  }
  return sum;
}

void Intervals::join() const {
  if (joined_) return;
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < spans_.size(); ++i) {
    if (spans_[i].begin <= spans_[last].end) {
      spans_[last].end = std::max(spans_[last].end, spans_[i].end);
    } else {
      spans_[++last] = spans_[i];
    }
  }
  spans_.resize(last + 1);
  before_.assign(spans_.size(), 0);
  for (std::size_t i = 1; i < spans_.size(); ++i) {
    before_[i] = before_[i - 1] + spans_[i - 1].end - spans_[i - 1].begin;
  }
  joined_ = true;
}

}  // namespace shoal::observe

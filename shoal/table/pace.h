// How much may be sent to somebody at once so that his link is free again soon: what it was seen to bear in a fiftieth of a second. Until it
// is known, anything. Values; threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "shoal/core/time.h"

namespace shoal::table {

class Pace {
 public:
  static constexpr std::size_t kLeast = 64 * 1024;  // bytes: less is not measured, for it would time the loop

  // That much leaves, when all before has left; and when it has.
  void sends(Instant now, std::size_t bytes) {
    began_ = now;
    bytes_ = bytes;
  }
  void drained(Instant now) {
    if (bytes_ >= kLeast && now > began_) {
      const double rate = static_cast<double>(bytes_) / seconds_between(began_, now);
      rate_ = rate_ == 0 ? rate : 0.75 * rate_ + 0.25 * rate;
    }
    bytes_ = 0;
  }
  std::size_t room() const {
    constexpr double seconds = 0.02;
    return rate_ == 0 ? std::numeric_limits<std::size_t>::max() : std::max(kLeast, static_cast<std::size_t>(rate_ * seconds));
  }

 private:
  Instant began_{};
  std::size_t bytes_ = 0;
  double rate_ = 0;  // bytes a second; 0: not known
};

}  // namespace shoal::table

#include "shoal/collective/chunk_size.h"

#include <algorithm>
#include <cmath>

namespace shoal::collective {

namespace {

constexpr std::uint64_t kAligned = 64;
constexpr std::uint32_t kSteps = 8, kQuiet = 3;

}  // namespace

void ChunkSize::tick(double rate) {
  const bool better = rate > best_rate_ * (1 + options_.gain);
  switch (phase_) {
    case Phase::growing:
      if (!better) {
        bytes_ = best_;
        step_ = std::max(best_ / kSteps / kAligned * kAligned, kAligned);
        quiet_ = 0;
        return trim();
      }
      best_ = bytes_;
      best_rate_ = rate;
      return grow();
    case Phase::trimming:
      if (better) {
        best_ = bytes_;
        best_rate_ = rate;
        quiet_ = 0;
      } else if (rate < best_rate_ * (1 - options_.gain) || ++quiet_ == kQuiet) {
        return settle();
      }
      return trim();
    case Phase::settled:
      if (std::abs(rate / best_rate_ - 1) <= options_.moved) return;
      best_rate_ = rate;
      phase_ = Phase::growing;
      return grow();
  }
}

void ChunkSize::grow() { bytes_ = std::min(2 * bytes_, options_.most); }

void ChunkSize::trim() {
  phase_ = Phase::trimming;
  if (bytes_ <= step_) return settle();
  bytes_ -= step_;
}

void ChunkSize::settle() {
  phase_ = Phase::settled;
  bytes_ = best_;
}

}  // namespace shoal::collective

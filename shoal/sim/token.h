// Whom an event of the kernel concerns, in simulate(). Internal to the room.
#pragma once

#include <cstdint>

namespace shoal::sim {

// What an event of the kernel is about: kept in its token.
struct Token {
  enum class Kind : std::uint8_t {
    start, prepared, flown, arrived, taken, local,         // of attempts; start of jobs
    transfer_start, transfer_flown, transfer_arrived,
    certain,                                               // a rank knows that all hold an operation
    fault, agreed, joined, returned,                       // it strikes; those who are left have voted; others are there; with the state
  } kind;
  std::uint32_t job;    // < 2^24; prepared, arrived, taken, local: attempt; certain: operation; of transfers and faults 0
  std::uint32_t index;  // start, certain: rank; flown: channel; prepared, arrived, taken: stream; local: lane; else transfer or fault

  std::uint64_t packed() const { return std::uint64_t(kind) << 56 | std::uint64_t{job} << 32 | index; }
  static Token of(std::uint64_t packed) {
    return {Kind(packed >> 56), static_cast<std::uint32_t>(packed >> 32 & 0xffffff), static_cast<std::uint32_t>(packed)};
  }
};

}  // namespace shoal::sim

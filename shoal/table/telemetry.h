// What a member met at a table: how stale the rows were that its workers read, what they waited for, and what it said and heard. Values; threads:
// one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "shoal/core/time.h"
#include "shoal/table/message.h"
#include "shoal/table/server_bytes.h"

namespace shoal::table {

// What a wait is for: the slowest worker's clock, before a read or after a tick; rows that are on their way; servers that have not counted in what
// was said to them; values, until what was added is everybody's; everybody.
enum class Cause : std::uint8_t { gate, fetch, back_pressure, bound, barrier };
inline constexpr std::size_t kCauses = 5;
const char* word(Cause cause);         // in data
const char* name(Cause cause);         // in sentences

struct Telemetry {
  // Rows read, by how many clocks they were behind the reader's (the clock differential of Dai et al., AAAI'15, without its sign); the last one
  // is for as many and more. None behind: also those that were ahead.
  static constexpr std::size_t kBins = 64;
  std::array<std::uint64_t, kBins> behind{};
  // And by how long ago their server had said, for all that was heard of it here, that they had the age that they have: the i-th less than 2^i
  // microseconds, and not less than the one before; the last one is for as much and more.
  static constexpr std::size_t kSpans = 40;
  std::array<std::uint64_t, kSpans> old{};
  static double seconds_below(std::size_t span) { return 1e-6 * static_cast<double>(std::uint64_t{1} << span); }
  std::array<double, kCauses> waited{};  // seconds, by cause
  std::array<std::uint64_t, kCauses> waits{};
  std::uint64_t unsubscribed = 0;        // rows (copies.h)
  std::uint64_t dropped = 0;             // clocks of this member that came too late (bsp with backups), at the server that dropped most
  struct Bytes {                         // of messages, also those to itself
    std::uint64_t added = 0, asked = 0, other = 0;  // said: updates; requests, and their ends; the rest
    std::uint64_t rows = 0, told = 0;               // heard: rows; the rest
    std::uint64_t given = 0, taken = 0, saved = 0;  // by the servers of this member (server_bytes.h)
  } bytes;

  void read(Clock age, Clock clock, Nanoseconds since_told);
  void wait(Cause cause, Nanoseconds time);
  void said(const Message& message);
  void heard(const Message& message);
  void servers(const ServerBytes& moved);
  std::uint64_t rows_read() const;
  // The least of seconds_below() that this share of the rows that were read was not older than.
  double seconds_old(double share) const;
  // For people: "1,200 rows read, ...", both histograms as rows of bars, each as high as its share of the largest; empty where nothing happened.
  std::string line(const std::string& table) const;
};

}  // namespace shoal::table

// Reading and writing the quantities people type: "200mbit", "64KB", "1.5s". Throws Error{invalid_argument}
// that repeats the text and shows a valid example. And lists of members as error lines name them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shoal/core/time.h"

namespace shoal {

double parse_rate(std::string_view text);         // "200mbit", "1gbit", "25MB/s" -> bytes per second
std::uint64_t parse_size(std::string_view text);  // "64KB", "8MB", "1.5MiB", "123" -> bytes (KB = 1000)
Nanoseconds parse_duration(std::string_view text);  // "500ms", "5s", "2m"
std::string show_rate(double bytes_per_second);   // "200 Mbit/s"
std::string show_size(double bytes);              // "7.4 MB"
std::string show_seconds(double seconds);         // "1.83 s", "12 ms", "85 us"
std::string show_count(std::uint64_t count);      // "1,000,209"
std::string show_count(std::uint64_t count, std::string_view nouns);  // "1,000,209 ratings", "1 rating"
std::string show_ranks(std::span<const std::uint32_t> ranks);  // "rank 2", "ranks 1, 3"; at least one

}  // namespace shoal

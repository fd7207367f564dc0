// How members share the work on a topic model. Documents are divided either way; what differs is who has the words' rows.
//
//   rotation  each slice of rows is one worker's at a time and goes round all of them: C_wk is exact at every draw
//   data      every member has all rows, and its threads alone have them go round; behind each sweep all tell each other what changed in theirs
//             (Newman, Asuncion, Smyth and Welling, "Distributed algorithms for topic models", JMLR 2009), so that C_wk of others is as old as the
//             sweep, and exact between two sweeps
//
// Rotation sends a member's rows on once a sweep; telling sends, to each of the others, two numbers for each token that changed. A row has no more
// entries than its word has tokens, so as long as tokens change at all alike, rotation sends less: with a random start the half or less, later far
// less, because rows grow short (foreseen() has the figures). Telling has one point in a sweep where members wait for each other, rotation as many
// as there are slices.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::learn::topic {

enum class Parallel : std::uint8_t { rotation, data };
Parallel parallel_of(std::string_view name);  // throws Error{invalid_argument} that names both

// Bytes that each member sends in a sweep, by the frequencies of words.
struct ForeseenBytes {
  double rotation = 0, data = 0;
  Parallel cheaper() const { return rotation <= data ? Parallel::rotation : Parallel::data; }
};
// As at a random start, where rows are longest and nearly all tokens change.
ForeseenBytes foreseen(std::span<const std::uint64_t> frequencies, std::uint32_t topics, std::uint32_t members);

}  // namespace shoal::learn::topic

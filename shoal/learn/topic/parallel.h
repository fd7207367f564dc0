// How members share the work on a topic model. Documents are divided either way; what differs is who has the words' rows.
//
//   rotation  each slice of rows is one worker's at a time and goes round all of them: C_wk is exact at every draw, and a member has its share of rows
//   data      every member has all rows, works on them in the same turns, and tells all others what it did (told_slices.h), as in the data-parallel
//             mode of LightLDA (Yuan et al., arXiv 1412.1576): with the usual staleness C_wk is as exact; with more it is as many steps old, and a
//             member whose link is slow to answer waits for less
//
// Rotation sends a member's rows on once a sweep. Telling sends, to each of the others, what a member's tokens changed, or the rows that they changed
// where these are shorter. Both draw the same tokens at the same steps, and send beside the drawing: so of two that send over the same links, the one
// that sends less is never later.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::learn::topic {

enum class Parallel : std::uint8_t { rotation, data };
Parallel parallel_of(std::string_view name);  // throws Error{invalid_argument} that names both

// Bytes that each member sends in a sweep, by the frequencies of words; and how long it draws meanwhile.
struct ForeseenBytes {
  double rotation = 0, data = 0;
  double seconds = 0;
  // Of equals rotation, with which a member has only a share of the rows.
  Parallel cheaper() const { return rotation <= data ? Parallel::rotation : Parallel::data; }
  double of(Parallel parallel) const { return parallel == Parallel::rotation ? rotation : data; }
};
// As at a random start, where rows are longest and nearly all tokens change. workers: threads of all members. before: entries of the rows of a model
// into which these documents come, which go round with theirs and do not change.
ForeseenBytes foreseen(std::span<const std::uint64_t> frequencies, std::uint32_t topics, std::uint32_t members, std::uint32_t workers,
                       std::size_t before = 0);

}  // namespace shoal::learn::topic

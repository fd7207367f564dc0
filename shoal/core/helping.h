// Long walks through memory by two cores: one alone does not use up what memory gives.
#pragma once

#include <cstddef>
#include <functional>

namespace shoal {

inline constexpr std::size_t kWorthHelp = std::size_t{2} << 20;  // bytes: half of them take longer than a thread to wake
inline constexpr std::size_t kHelpPiece = std::size_t{1} << 20;

// As with_help(), whatever they are worth, in pieces of so many.
void share(std::size_t count, std::size_t piece, const std::function<void(std::size_t begin, std::size_t end)>& body);

// body(begin, end) for pieces that together are [0, count), elements of so many bytes. Where they are worth it, by the caller and by a thread that waits for such work from the first time on:
// whoever is free takes the next, and the caller waits for none that was not begun, so where all cores are busy it does them itself. A second caller at the same time has no help, nor has
// anybody on one core. body: throws nothing, and may run twice at once. Threads: any.
template <class Body>
void with_help(std::size_t count, std::size_t bytes_each, const Body& body) {
  if (count * bytes_each < kWorthHelp) return body(std::size_t{0}, count);
  share(count, kHelpPiece / bytes_each, body);
}

}  // namespace shoal

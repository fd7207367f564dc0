// Long walks through memory by two cores: one alone does not use up what memory gives.
#pragma once

#include <cstddef>
#include <functional>

namespace shoal {

inline constexpr std::size_t kWorthHelp = std::size_t{2} << 20;  // bytes: half of them take longer than a thread to wake
inline constexpr std::size_t kHelpPiece = std::size_t{1} << 20;

// body(begin, end) for pieces that together are [0, count), of `piece` each but the last: by the caller, and by a thread that waits for such work. Whoever is free takes the next, and the
// caller waits for none that was not begun: where all cores are busy it does them itself. A second caller at the same time has no help, nor has anybody on one core.
// body: throws nothing, and may run twice at once. Threads: any.
void with_help(std::size_t count, std::size_t piece, const std::function<void(std::size_t begin, std::size_t end)>& body);

}  // namespace shoal

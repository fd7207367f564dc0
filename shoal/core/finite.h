// Whether numbers are finite, looked at with the widest vectors of this CPU (Highway): by itself, or while they are copied, so that memory is read once.
// Threads: pure functions.
#pragma once

#include <span>

namespace shoal {

// Whether none is an infinity or not a number.
bool all_finite(std::span<const float> values);
bool all_finite(std::span<const double> values);

// into[i] = from[i], of as many, which do not overlap; whether these are finite.
bool copy_finite(std::span<float> into, std::span<const float> from);
bool copy_finite(std::span<double> into, std::span<const double> from);

}  // namespace shoal

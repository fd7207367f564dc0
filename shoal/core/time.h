// Time inside Shoal: signed nanoseconds on a monotonic axis. Never the wall clock (only run.json has that).
#pragma once

#include <chrono>

namespace shoal {

using Nanoseconds = std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;
// A point on the clock of whoever hands it out: the machine's steady clock (tcp, traces) or a scripted
// one (inproc, sim). Never compare points of two clocks.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;

inline double seconds_between(Instant begin, Instant end) { return Seconds(end - begin).count(); }
inline Instant steady_now() { return std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now()); }

}  // namespace shoal

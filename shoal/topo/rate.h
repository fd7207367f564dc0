// Which rates a link may have, whoever says so: a file, a generator, an import. Between a byte in a quarter of an hour and a million times what the fastest
// links carry. Beyond, sums and quotients of rates leave the range of doubles, and linear programmes over them mean nothing.
#pragma once

namespace shoal::topo {

inline constexpr double kLeastRate = 1e-3, kMostRate = 1e18;  // bytes/s, or link units
inline constexpr const char* kNoSuchRate = "no link is so slow or so fast";
inline bool is_rate(double rate) { return rate >= kLeastRate && rate <= kMostRate; }  // no NaN either

}  // namespace shoal::topo

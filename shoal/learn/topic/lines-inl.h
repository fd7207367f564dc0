// A line: 16 numbers, in as many parts as it takes vectors of one instruction set to hold them. What is summed is summed in the same order for all.
// Included once per target (Highway), only by exact.cc.

#if defined(SHOAL_LEARN_TOPIC_LINES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_LEARN_TOPIC_LINES_INL_H
#undef SHOAL_LEARN_TOPIC_LINES_INL_H
#else
#define SHOAL_LEARN_TOPIC_LINES_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "shoal/learn/topic/block.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::topic {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, kLine>;
using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;
using Floats = hn::Vec<F>;
constexpr std::size_t kLanes = hn::MaxLanes(F());
constexpr std::size_t kParts = kLine / kLanes;

HWY_INLINE Floats load(const float* from) { return hn::Load(F(), from); }

// The lane of that number of a line, none for other numbers. (Highway's Iota stores its numbers one by one and waits for them to load them.)
HWY_INLINE hn::Mask<F> is_lane(std::size_t part, std::uint32_t lane) {
  alignas(64) static constexpr std::uint32_t numbers[kLine] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return hn::RebindMask(F(), hn::Eq(hn::Load(U(), numbers + part * kLanes), hn::Set(U(), lane)));
}
// Lanes as bits, the first one lowest. (Highway's FindFirstTrue has a branch.)
HWY_INLINE std::uint32_t bits_of(hn::Mask<U> mask) {
  std::uint8_t bytes[8];
  hn::StoreMaskBits(U(), mask, bytes);
  if constexpr (kLanes <= 8) return bytes[0];
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

// Sums of the lanes up to each one, in `sums`[0..15]; before them `sums`[-1] is 0. In the same order for all targets: within four lanes, then over
// fours.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void add_within_fours(const Floats (&line)[kParts], float* HWY_RESTRICT sums) {
  for (std::size_t i = 0; i < kLine; ++i) sums[i] = hn::GetLane(line[i]);
  for (const std::size_t apart : {1, 2}) {
    for (std::size_t i = kLine; i-- > 0;) {
      if (i % 4 >= apart) sums[i] += sums[i - apart];
    }
  }
}
#else
HWY_INLINE Floats add_within_fours(Floats v) {
  v = hn::Add(v, hn::ShiftLeftLanes<1>(F(), v));
  return hn::Add(v, hn::ShiftLeftLanes<2>(F(), v));
}
HWY_INLINE void add_within_fours(const Floats (&line)[kParts], float* HWY_RESTRICT sums) {
  for (std::size_t part = 0; part < kParts; ++part) hn::Store(add_within_fours(line[part]), F(), sums + part * kLanes);
}
#endif

HWY_INLINE void prefix(const Floats (&line)[kParts], float* HWY_RESTRICT sums) {
#if HWY_TARGET <= HWY_AVX3
  alignas(64) static constexpr std::int32_t one[kLine] = {0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11};
  alignas(64) static constexpr std::int32_t two[kLine] = {0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7};
  const F f;
  Floats v = add_within_fours(line[0]);
  v = hn::Add(v, hn::IfThenZeroElse(hn::FirstN(f, 4), hn::TableLookupLanes(v, hn::SetTableIndices(f, one))));
  v = hn::Add(v, hn::IfThenZeroElse(hn::FirstN(f, 8), hn::TableLookupLanes(v, hn::SetTableIndices(f, two))));
  hn::Store(v, f, sums);
#elif HWY_TARGET == HWY_AVX2
  const Floats v = add_within_fours(line[0]), w = add_within_fours(line[1]);
  const Floats firsts = hn::Broadcast<3>(v), thirds = hn::Broadcast<3>(w);  // of each half: sums of its first four
  const Floats both = hn::Add(firsts, hn::ConcatLowerUpper(F(), firsts, firsts));
  hn::Store(hn::Add(v, hn::ConcatLowerLower(F(), firsts, hn::Zero(F()))), F(), sums);
  hn::Store(hn::Add(hn::Add(w, hn::ConcatLowerUpper(F(), thirds, firsts)), hn::ConcatUpperLower(F(), both, firsts)), F(),
            sums + kLanes);
#else
  add_within_fours(line, sums);
  const float first = sums[3], second = sums[7], third = sums[11], both = second + first;
  for (std::size_t i = 4; i < 8; ++i) sums[i] += first;
  for (std::size_t i = 8; i < 12; ++i) sums[i] = (sums[i] + second) + first;
  for (std::size_t i = 12; i < 16; ++i) sums[i] = (sums[i] + third) + both;
#endif
}

// Of all lanes, in the same order for all targets: the halves of a line are added up, then those of what that is.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE float sum_of_lanes(Floats v) { return hn::GetLane(v); }
#else
template <class Vector>
HWY_INLINE float sum_of_lanes(Vector v) {
  using D = hn::DFromV<Vector>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    return sum_of_lanes(hn::Add(hn::LowerHalf(hn::Half<D>(), v), hn::UpperHalf(hn::Half<D>(), v)));
  }
}
#endif
HWY_INLINE float sum_of(const Floats (&line)[kParts]) {
  Floats sums[kParts];
  for (std::size_t part = 0; part < kParts; ++part) sums[part] = line[part];
  for (std::size_t half = kParts / 2; half > 0; half /= 2) {
    for (std::size_t part = 0; part < half; ++part) sums[part] = hn::Add(sums[part], sums[half + part]);
  }
  return sum_of_lanes(sums[0]);
}

// How many of the 16 sums are at most u: the lane that u falls into, 16 if it is behind all.
HWY_INLINE std::uint32_t lane_of(const float* sums, float u) {
  std::size_t lanes = 0;
  for (std::size_t part = 0; part < kParts; ++part)
    lanes += hn::CountTrue(F(), hn::Le(load(sums + part * kLanes), hn::Set(F(), u)));
  return static_cast<std::uint32_t>(lanes);
}

// Where u falls among sums of groups, without `own_weight` of one of them; u becomes what is left of it there. `groups` where it is behind all.
// Zeros lie behind the last sum, up to a whole line; scan: two lines, of which the first one is zeros.
HWY_INLINE std::size_t group_of(const float* sums, std::size_t groups, std::size_t own, float own_weight,
                                float* HWY_RESTRICT scan, float& u) {
  for (std::size_t begin = 0; begin < groups; begin += kLine) {
    Floats line[kParts];
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto is_own = is_lane(part, static_cast<std::uint32_t>(own - begin));
      line[part] = hn::Sub(load(sums + begin + part * kLanes), hn::IfThenElseZero(is_own, hn::Set(F(), own_weight)));
    }
    prefix(line, scan + kLine);
    if (const std::uint32_t lane = lane_of(scan + kLine, u); lane < kLine) {
      u -= scan[kLine - 1 + lane];
      return begin + lane;
    }
    u -= scan[2 * kLine - 1];
  }
  return groups;
}

// Where u falls among so many lines, whose sums lane by lane lie in `cumulative`, those of the last one in `all`.
HWY_INLINE std::uint32_t place_in(const float* HWY_RESTRICT cumulative, const Floats (&all)[kParts], std::uint32_t lines, float u,
                                  float* HWY_RESTRICT scan) {
  prefix(all, scan + kLine);
  const std::uint32_t lane = std::min<std::uint32_t>(lane_of(scan + kLine, u), kLine - 1);
  const float rest = u - scan[kLine - 1 + lane];
  std::uint32_t line = 0;
  for (std::uint32_t i = 0; i + 1 < lines; ++i) line += cumulative[i * kLine + lane] <= rest;
  return line * kLine + lane;
}

// The same of weights that weigh(at) gives part by part, of which that at `own` counts as none; `cumulative` has room for their sums.
template <class Weigh>
HWY_INLINE std::uint32_t place_among(std::uint32_t lines, std::uint32_t own, float u, float* HWY_RESTRICT cumulative, float* HWY_RESTRICT scan,
                                     const Weigh& weigh) {
  Floats sums[kParts];
  for (Floats& sum : sums) sum = hn::Zero(F());
  for (std::uint32_t i = 0; i < lines * kLine; i += kLine) {
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t at = i + part * kLanes;
      sums[part] = hn::Add(sums[part], hn::IfThenZeroElse(is_lane(part, own - i), weigh(at)));
      hn::Store(sums[part], F(), cumulative + at);
    }
  }
  return place_in(cumulative, sums, lines, u, scan);
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::topic
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

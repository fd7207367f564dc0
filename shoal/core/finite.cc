// Compiled once per target by foreach_target, as reduce.cc is. A number is not finite where all bits of its exponent are set.
#include "shoal/core/finite.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "shoal/core/finite.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// into: nullptr, or where they are copied.
template <class T>
bool look(T* into, const T* from, std::size_t count) {
  const hn::ScalableTag<T> lanes;
  const hn::RebindToUnsigned<decltype(lanes)> bits;
  const auto exponent = hn::BitCast(bits, hn::Set(lanes, std::numeric_limits<T>::infinity()));
  auto wrong = hn::Zero(bits);
  const std::size_t vector = hn::Lanes(lanes);
  std::size_t i = 0;
  for (; i + vector <= count; i += vector) {
    const auto values = hn::LoadU(lanes, from + i);
    if (into) hn::StoreU(values, lanes, into + i);
    wrong = hn::Or(wrong, hn::VecFromMask(bits, hn::Eq(hn::And(hn::BitCast(bits, values), exponent), exponent)));
  }
  bool all = hn::AllTrue(bits, hn::Eq(wrong, hn::Zero(bits)));
  for (; i < count; ++i) {
    all = all && std::isfinite(from[i]);
    if (into) into[i] = from[i];
  }
  return all;
}

bool look_at_floats(float* into, const float* from, std::size_t count) { return look(into, from, count); }
bool look_at_doubles(double* into, const double* from, std::size_t count) { return look(into, from, count); }

}  // namespace HWY_NAMESPACE
}  // namespace shoal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal {

HWY_EXPORT(look_at_floats);
HWY_EXPORT(look_at_doubles);

bool all_finite(std::span<const float> values) { return HWY_DYNAMIC_DISPATCH(look_at_floats)(nullptr, values.data(), values.size()); }
bool all_finite(std::span<const double> values) { return HWY_DYNAMIC_DISPATCH(look_at_doubles)(nullptr, values.data(), values.size()); }
bool copy_finite(std::span<float> into, std::span<const float> from) { return HWY_DYNAMIC_DISPATCH(look_at_floats)(into.data(), from.data(), from.size()); }
bool copy_finite(std::span<double> into, std::span<const double> from) { return HWY_DYNAMIC_DISPATCH(look_at_doubles)(into.data(), from.data(), from.size()); }

}  // namespace shoal
#endif  // HWY_ONCE

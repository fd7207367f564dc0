// Compiled once per target by foreach_target, as reduce.cc is. A number is not finite where all bits of its exponent are set.
#include "shoal/core/finite.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "shoal/core/finite.cc"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Bytes: a copy this long is read from memory again in any case, and written past the caches no line is fetched before it is written.
constexpr std::size_t kPastCaches = std::size_t{1} << 20;

// into: nullptr, or where the first `head` and the last ones go, one by one; what lies between is for store(vector, i).
template <class T, class Store>
bool look(T* into, const T* from, std::size_t head, std::size_t count, const Store& store) {
  const hn::ScalableTag<T> lanes;
  const hn::RebindToUnsigned<decltype(lanes)> bits;
  const auto exponent = hn::BitCast(bits, hn::Set(lanes, std::numeric_limits<T>::infinity()));
  auto wrong = hn::Zero(bits);
  const std::size_t vector = hn::Lanes(lanes);
  bool all = true;
  const auto one = [&](std::size_t i) {
    all = all && std::isfinite(from[i]);
    if (into) into[i] = from[i];
  };
  std::size_t i = 0;
  for (; i < head; ++i) one(i);
  for (; i + vector <= count; i += vector) {
    const auto values = hn::LoadU(lanes, from + i);
    store(values, i);
    wrong = hn::Or(wrong, hn::VecFromMask(bits, hn::Eq(hn::And(hn::BitCast(bits, values), exponent), exponent)));
  }
  for (; i < count; ++i) one(i);
  return hn::AllTrue(bits, hn::Eq(wrong, hn::Zero(bits))) && all;
}

template <class T>
bool look(const T* from, std::size_t count) {
  return look<T>(nullptr, from, 0, count, [](const auto&, std::size_t) {});
}

template <class T>
bool copy(T* into, const T* from, std::size_t count) {
  const hn::ScalableTag<T> lanes;
  if (count * sizeof(T) < kPastCaches) return look(into, from, 0, count, [&](const auto& values, std::size_t i) { hn::StoreU(values, lanes, into + i); });
  const std::size_t bytes = hn::Lanes(lanes) * sizeof(T), astray = reinterpret_cast<std::uintptr_t>(into) % bytes;
  const std::size_t head = astray == 0 ? 0 : (bytes - astray) / sizeof(T);
  const bool all = look(into, from, head, count, [&](const auto& values, std::size_t i) { hn::Stream(values, lanes, into + i); });
  hwy::FlushStream();
  return all;
}

bool look_at_floats(const float* from, std::size_t count) { return look(from, count); }
bool look_at_doubles(const double* from, std::size_t count) { return look(from, count); }
bool copy_floats(float* into, const float* from, std::size_t count) { return copy(into, from, count); }
bool copy_doubles(double* into, const double* from, std::size_t count) { return copy(into, from, count); }

}  // namespace HWY_NAMESPACE
}  // namespace shoal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal {

HWY_EXPORT(look_at_floats);
HWY_EXPORT(look_at_doubles);
HWY_EXPORT(copy_floats);
HWY_EXPORT(copy_doubles);

bool all_finite(std::span<const float> values) { return HWY_DYNAMIC_DISPATCH(look_at_floats)(values.data(), values.size()); }
bool all_finite(std::span<const double> values) { return HWY_DYNAMIC_DISPATCH(look_at_doubles)(values.data(), values.size()); }
bool copy_finite(std::span<float> into, std::span<const float> from) { return HWY_DYNAMIC_DISPATCH(copy_floats)(into.data(), from.data(), from.size()); }
bool copy_finite(std::span<double> into, std::span<const double> from) { return HWY_DYNAMIC_DISPATCH(copy_doubles)(into.data(), from.data(), from.size()); }

}  // namespace shoal
#endif  // HWY_ONCE

// What reduce.cc computes with, per target: how elements become lanes and back, and the operations on lanes.
// Included once per target (Highway), only by reduce.cc.

#if defined(SHOAL_CORE_REDUCE_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_CORE_REDUCE_LANES_INL_H
#undef SHOAL_CORE_REDUCE_LANES_INL_H
#else
#define SHOAL_CORE_REDUCE_LANES_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kMostVectorBytes = HWY_MAX_BYTES;

// Lanes that are the elements themselves.
template <class T>
struct PlainLanes {
  static constexpr std::size_t kElementBytes = sizeof(T);
  using Tag = hn::ScalableTag<T>;
  Tag tag() const { return Tag(); }
  std::size_t count() const { return hn::Lanes(Tag()); }
  hn::Vec<Tag> load(const std::uint8_t* from) const {
    return hn::LoadU(Tag(), reinterpret_cast<const T*>(from));
  }
  void store(hn::Vec<Tag> lanes, std::uint8_t* into) const {
    hn::StoreU(lanes, Tag(), reinterpret_cast<T*>(into));
  }
};

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;  // as many as F32 has, in half the bytes

inline hn::Vec<U32> load_halves(const std::uint8_t* from) {
  return hn::PromoteTo(U32(), hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(from)));
}

// Every value is below 2^16, so that the saturation of the signed narrowing (Highway has no other) never
// acts.
inline void store_halves(hn::Vec<U32> halves, std::uint8_t* into) {
  const hn::RebindToSigned<F32> i32;
  hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(i32, halves)), U16(), reinterpret_cast<std::uint16_t*>(into));
}

// The upper half of an f32.
struct Bf16Lanes {
  static constexpr std::size_t kElementBytes = 2;
  F32 tag() const { return F32(); }
  std::size_t count() const { return hn::Lanes(F32()); }

  hn::Vec<F32> load(const std::uint8_t* from) const {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(load_halves(from)));
  }

  // To nearest, ties to even; every NaN becomes 0x7FC0, as in PyTorch.
  void store(hn::Vec<F32> lanes, std::uint8_t* into) const {
    const U32 u32;
    const auto bits = hn::BitCast(u32, lanes);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(u32, 0x7FFF))));
    const auto is_nan = hn::RebindMask(u32, hn::IsNaN(lanes));
    store_halves(hn::IfThenElse(is_nan, hn::Set(u32, 0x7FC0), rounded), into);
  }
};

// IEEE half precision. The conversions are integer arithmetic on every target, also where the CPU has a unit
// for them (F16C): Highway emulates the others with another rounding, and one code gives one set of bits.
struct F16Lanes {
  static constexpr std::size_t kElementBytes = 2;
  F32 tag() const { return F32(); }
  std::size_t count() const { return hn::Lanes(F32()); }

  // Exponents are moved by 112 = 127 - 15. A subnormal half h x 2^-24 is read as (1 + h x 2^-10) x 2^-14, a
  // normal f32, and loses the 1 x 2^-14 again by an exact subtraction.
  hn::Vec<F32> load(const std::uint8_t* from) const {
    const U32 u32;
    const auto half = load_halves(from);
    const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(u32, 0x7FFF)));
    const auto exponent = hn::And(magnitude, hn::Set(u32, 0x0F800000));
    const auto normal = hn::Add(magnitude, hn::Set(u32, 112u << 23));
    const auto special = hn::Add(normal, hn::Set(u32, 112u << 23));  // infinity and NaN: 31 becomes 255
    const auto one = hn::BitCast(F32(), hn::Set(u32, 113u << 23));
    const auto subnormal =
        hn::BitCast(u32, hn::Sub(hn::BitCast(F32(), hn::Add(magnitude, hn::Set(u32, 113u << 23))), one));
    const auto finite = hn::IfThenElse(hn::Eq(exponent, hn::Zero(u32)), subnormal, normal);
    const auto value = hn::IfThenElse(hn::Eq(exponent, hn::Set(u32, 0x0F800000)), special, finite);
    return hn::BitCast(F32(), hn::Or(value, hn::ShiftLeft<16>(hn::And(half, hn::Set(u32, 0x8000)))));
  }

  // To nearest, ties to even; above 65504 + half a unit infinity; every NaN becomes 0x7E00.
  void store(hn::Vec<F32> lanes, std::uint8_t* into) const {
    const U32 u32;
    const hn::RebindToSigned<F32> i32;  // magnitudes are below 2^31: signed comparisons exist everywhere
    const auto bits = hn::BitCast(u32, lanes);
    const auto magnitude = hn::And(bits, hn::Set(u32, 0x7FFFFFFF));
    const auto below = [&](std::uint32_t bound) {
      return hn::RebindMask(
          u32, hn::Lt(hn::BitCast(i32, magnitude), hn::Set(i32, static_cast<std::int32_t>(bound))));
    };
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(u32, 1));
    const auto moved = hn::Sub(magnitude, hn::Set(u32, 112u << 23));
    const auto normal = hn::ShiftRight<13>(hn::Add(moved, hn::Add(odd, hn::Set(u32, 0xFFF))));
    // Adding 0.5 makes the f32 unit round at 2^-24, the unit of subnormal halves.
    const auto half_one = hn::Set(F32(), 0.5f);
    const auto subnormal = hn::Sub(hn::BitCast(u32, hn::Add(hn::BitCast(F32(), magnitude), half_one)),
                                   hn::BitCast(u32, half_one));
    const auto finite = hn::IfThenElse(below(113u << 23), subnormal, normal);
    const auto special = hn::IfThenElse(below(0x7F800001), hn::Set(u32, 0x7C00), hn::Set(u32, 0x7E00));
    const auto half = hn::IfThenElse(below(143u << 23), finite, special);
    const auto is_nan = hn::RebindMask(u32, hn::IsNaN(lanes));
    const auto sign = hn::IfThenZeroElse(is_nan, hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 0x8000)));
    store_halves(hn::Or(half, sign), into);
  }
};

// The operations: `so_far` is the fold up to here.
struct Sum {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::Add(so_far, next);
  }
};
struct Product {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::Mul(so_far, next);
  }
};
struct Quotient {
  template <class V>
  V operator()(V dividend, V divisor) const {
    return hn::Div(dividend, divisor);
  }
};
struct Min {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::Min(so_far, next);
  }
};
struct Max {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::Max(so_far, next);
  }
};
// The first NaN wins, and of equal values (0 and -0) the first: machine instructions differ in both.
struct MinOrNan {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::IfThenElse(hn::Or(hn::Le(so_far, next), hn::IsNaN(so_far)), so_far, next);
  }
};
struct MaxOrNan {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::IfThenElse(hn::Or(hn::Ge(so_far, next), hn::IsNaN(so_far)), so_far, next);
  }
};
struct BitAnd {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::And(so_far, next);
  }
};
struct BitOr {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::Or(so_far, next);
  }
};
struct BitXor {
  template <class V>
  V operator()(V so_far, V next) const {
    return hn::Xor(so_far, next);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shoal
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// Compiled once per target by foreach_target; each public function dispatches once a call.
//
// Words: an element is what the caller counts; a lane is what is computed with. They differ for f16 and bf16,
// whose lanes are f32. A block is four vectors of lanes: loaded from every source in turn, folded in
// registers, stored once.
#include "shoal/core/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "shoal/core/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "shoal/core/reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "shoal/core/reduce_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal {
namespace HWY_NAMESPACE {

// Elements `begin` to `count` of `out`, a vector at a time: compute(i, load) gives those from i on, where `load` reads a
// source's. The last ones pass through a buffer, so that no byte outside of the slices is touched.
template <class Lanes, class Compute>
void each_vector(std::uint8_t* out, std::size_t begin, std::size_t count, Compute compute) {
  const Lanes lanes;
  constexpr std::size_t kSize = Lanes::kElementBytes;
  const std::size_t vector = lanes.count();
  std::size_t i = begin;
  for (; i + vector <= count; i += vector) {
    const auto load = [&](const std::uint8_t* from) { return lanes.load(from); };
    lanes.store(compute(i, load), out + i * kSize);
  }
  if (i == count) return;
  alignas(64) std::array<std::uint8_t, kMostVectorBytes> rest{};
  const std::size_t bytes = (count - i) * kSize;
  const auto load_rest = [&](const std::uint8_t* from) {
    std::memcpy(rest.data(), from, bytes);
    return lanes.load(rest.data());
  };
  lanes.store(compute(i, load_rest), rest.data());
  std::memcpy(out + i * kSize, rest.data(), bytes);
}

// out[i] = fold of sources[0][i], sources[1][i], ...; `out` may be one of them.
template <class Lanes, class Op>
void fold_lanes(std::uint8_t* out, const void* const* sources, std::size_t source_count, std::size_t count) {
  const Lanes lanes;
  const Op op;
  constexpr std::size_t kSize = Lanes::kElementBytes;
  const std::size_t vector = lanes.count();
  const auto at = [&](std::size_t source, std::size_t i) {
    return static_cast<const std::uint8_t*>(sources[source]) + i * kSize;
  };
  std::size_t i = 0;
  for (; i + 4 * vector <= count; i += 4 * vector) {
    const std::uint8_t* from = at(0, i);
    auto a = lanes.load(from);
    auto b = lanes.load(from + vector * kSize);
    auto c = lanes.load(from + 2 * vector * kSize);
    auto d = lanes.load(from + 3 * vector * kSize);
    for (std::size_t source = 1; source < source_count; ++source) {
      from = at(source, i);
      a = op(a, lanes.load(from));
      b = op(b, lanes.load(from + vector * kSize));
      c = op(c, lanes.load(from + 2 * vector * kSize));
      d = op(d, lanes.load(from + 3 * vector * kSize));
    }
    lanes.store(a, out + i * kSize);
    lanes.store(b, out + (i + vector) * kSize);
    lanes.store(c, out + (i + 2 * vector) * kSize);
    lanes.store(d, out + (i + 3 * vector) * kSize);
  }
  each_vector<Lanes>(out, i, count, [&](std::size_t first, const auto& load) {
    auto folded = load(at(0, first));
    for (std::size_t source = 1; source < source_count; ++source) folded = op(folded, load(at(source, first)));
    return folded;
  });
}

// The products that vector units lack (8 and 64 bits), modulo 2^bits.
template <class T>
void fold_products(std::uint8_t* out, const void* const* sources, std::size_t source_count,
                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t product = 1;
    for (std::size_t source = 0; source < source_count; ++source) {
      T factor;
      std::memcpy(&factor, static_cast<const std::uint8_t*>(sources[source]) + i * sizeof(T), sizeof(T));
      product *= static_cast<std::uint64_t>(factor);
    }
    const T result = static_cast<T>(product);
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

template <class Lanes>
void fold_floats(ReduceOp op, std::uint8_t* out, const void* const* sources, std::size_t source_count,
                 std::size_t count) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return fold_lanes<Lanes, Sum>(out, sources, source_count, count);
    case ReduceOp::product:
      return fold_lanes<Lanes, Product>(out, sources, source_count, count);
    case ReduceOp::min:
      return fold_lanes<Lanes, MinOrNan>(out, sources, source_count, count);
    case ReduceOp::max:
      return fold_lanes<Lanes, MaxOrNan>(out, sources, source_count, count);
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor:
      return;  // refused before the dispatch
  }
}

template <class T>
void fold_integers(ReduceOp op, std::uint8_t* out, const void* const* sources, std::size_t source_count,
                   std::size_t count) {
  using Lanes = PlainLanes<T>;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return fold_lanes<Lanes, Sum>(out, sources, source_count, count);
    case ReduceOp::product:
      if constexpr (sizeof(T) == 4) return fold_lanes<Lanes, Product>(out, sources, source_count, count);
      return fold_products<T>(out, sources, source_count, count);
    case ReduceOp::min:
      return fold_lanes<Lanes, Min>(out, sources, source_count, count);
    case ReduceOp::max:
      return fold_lanes<Lanes, Max>(out, sources, source_count, count);
    case ReduceOp::bit_and:
      return fold_lanes<Lanes, BitAnd>(out, sources, source_count, count);
    case ReduceOp::bit_or:
      return fold_lanes<Lanes, BitOr>(out, sources, source_count, count);
    case ReduceOp::bit_xor:
      return fold_lanes<Lanes, BitXor>(out, sources, source_count, count);
  }
}

// A bool is a byte, 0 or 1.
ReduceOp on_bytes(ReduceOp op) {
  if (op == ReduceOp::sum || op == ReduceOp::max) return ReduceOp::bit_or;
  if (op == ReduceOp::product || op == ReduceOp::min) return ReduceOp::bit_and;
  return op;
}

void Fold(DType type, ReduceOp op, std::uint8_t* out, const void* const* sources, std::size_t source_count,
          std::size_t count) {
  switch (type) {
    case DType::f32:
      return fold_floats<PlainLanes<float>>(op, out, sources, source_count, count);
    case DType::f64:
      return fold_floats<PlainLanes<double>>(op, out, sources, source_count, count);
    case DType::f16:
      return fold_floats<F16Lanes>(op, out, sources, source_count, count);
    case DType::bf16:
      return fold_floats<Bf16Lanes>(op, out, sources, source_count, count);
    case DType::i8:
      return fold_integers<std::int8_t>(op, out, sources, source_count, count);
    case DType::u8:
      return fold_integers<std::uint8_t>(op, out, sources, source_count, count);
    case DType::i32:
      return fold_integers<std::int32_t>(op, out, sources, source_count, count);
    case DType::i64:
      return fold_integers<std::int64_t>(op, out, sources, source_count, count);
    case DType::boolean:
      return fold_integers<std::uint8_t>(on_bytes(op), out, sources, source_count, count);
  }
}

// out[i] = from[i] op number, the number as a second operand in every lane.
template <class Lanes, class Op>
void apply_lanes(std::uint8_t* out, const std::uint8_t* from, double number, std::size_t count) {
  const Lanes lanes;
  using Lane = hn::TFromD<decltype(lanes.tag())>;
  const auto operand = hn::Set(lanes.tag(), static_cast<Lane>(number));
  each_vector<Lanes>(out, 0, count, [from, operand](std::size_t first, const auto& load) {
    return Op()(load(from + first * Lanes::kElementBytes), operand);
  });
}

template <class Op>
void apply_floats(DType type, std::uint8_t* out, const std::uint8_t* from, double number, std::size_t count) {
  if (type == DType::f32) return apply_lanes<PlainLanes<float>, Op>(out, from, number, count);
  if (type == DType::f64) return apply_lanes<PlainLanes<double>, Op>(out, from, number, count);
  if (type == DType::f16) return apply_lanes<F16Lanes, Op>(out, from, number, count);
  return apply_lanes<Bf16Lanes, Op>(out, from, number, count);
}

void ScaleFloats(DType type, std::uint8_t* out, const std::uint8_t* from, double factor, std::size_t count) {
  apply_floats<Product>(type, out, from, factor, count);
}

void DivideFloats(DType type, std::uint8_t* out, const std::uint8_t* from, double divisor,
                  std::size_t count) {
  apply_floats<Quotient>(type, out, from, divisor, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal {
namespace {

HWY_EXPORT(Fold);
HWY_EXPORT(ScaleFloats);
HWY_EXPORT(DivideFloats);

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16;
}

[[noreturn]] void refuse(DType type, const char* operation) {
  throw Error(Code::unsupported,
              std::string(operation) + " is not defined for elements of type " + name(type));
}

void check(DType type, ReduceOp op) {
  const bool bitwise = op == ReduceOp::bit_and || op == ReduceOp::bit_or || op == ReduceOp::bit_xor;
  if (bitwise ? is_float(type) : type == DType::boolean && op == ReduceOp::average) refuse(type, name(op));
}

// Every element of `from` through `function` into `into`; neither need be aligned.
template <class T, class Function>
void each(void* into, const void* from, std::size_t count, const Function& function) {
  auto* out = static_cast<std::uint8_t*>(into);
  const auto* in = static_cast<const std::uint8_t*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, in + i * sizeof(T), sizeof(T));
    value = function(value);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

template <class Function>
void each_integer(DType type, void* into, const void* from, std::size_t count, const Function& function) {
  switch (type) {
    case DType::i8:
      return each<std::int8_t>(into, from, count, function);
    case DType::u8:
      return each<std::uint8_t>(into, from, count, function);
    case DType::i32:
      return each<std::int32_t>(into, from, count, function);
    default:
      return each<std::int64_t>(into, from, count, function);
  }
}

// To the nearest integer, ties to even; beyond T's range its end, NaN becomes 0.
template <class T>
T nearest(double value) {
  // 2^digits is exact in f64, max() of i64 is not.
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (std::isnan(value)) return 0;
  value = std::nearbyint(value);
  if (value >= beyond) return std::numeric_limits<T>::max();
  if (value < static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

}  // namespace

void reduce(DType type, ReduceOp op, void* into, const void* from, std::size_t count) {
  const std::array<const void*, 2> sources{into, from};
  fold(type, op, into, sources, count);
}

void fold(DType type, ReduceOp op, void* into, std::span<const void* const> from, std::size_t count) {
  check(type, op);
  if (from.empty()) throw Error(Code::internal, "a fold without sources");
  if (count == 0) return;
  if (from.size() == 1) {
    std::memmove(into, from[0], count * size_of(type));
    return;
  }
  HWY_DYNAMIC_DISPATCH(Fold)(type, op, static_cast<std::uint8_t*>(into), from.data(), from.size(), count);
}

void scale(DType type, void* into, const void* from, double factor, std::size_t count) {
  if (type == DType::boolean) refuse(type, "scaling");
  if (is_float(type)) {
    HWY_DYNAMIC_DISPATCH(ScaleFloats)
    (type, static_cast<std::uint8_t*>(into), static_cast<const std::uint8_t*>(from), factor, count);
    return;
  }
  each_integer(type, into, from, count, [factor](auto value) {
    return nearest<decltype(value)>(static_cast<double>(value) * factor);
  });
}

void divide(DType type, void* into, double divisor, std::size_t count) {
  if (type == DType::boolean) refuse(type, "dividing");
  if (is_float(type)) {
    auto* const data = static_cast<std::uint8_t*>(into);
    HWY_DYNAMIC_DISPATCH(DivideFloats)(type, data, data, divisor, count);
    return;
  }
  const auto whole = nearest<std::int64_t>(divisor);
  if (whole == 0) {
    throw Error(Code::invalid_argument, "integers cannot be divided by " + std::to_string(divisor));
  }
  each_integer(type, into, into, count, [whole](auto value) {
    using T = decltype(value);
    // The one quotient that i64 cannot hold wraps, as every other integer does here.
    if (whole == -1) return static_cast<T>(-static_cast<std::uint64_t>(value));
    return static_cast<T>(static_cast<std::int64_t>(value) / whole);
  });
}

}  // namespace shoal
#endif  // HWY_ONCE

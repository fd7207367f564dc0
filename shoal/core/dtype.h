// Element types that Shoal moves and adds, and the ways it adds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, i64, boolean };

std::size_t size_of(DType type);    // bytes of one element
const char* name(DType type);       // "f32", as written in plans and programs
DType dtype_from(const std::string& name);  // throws Error{invalid_argument}

// How elements of several members become one.
// `average` sums, then divides once by the number of members (integers: truncating division). bool: sum is
// "or", product is "and". A weighted mean is a sum of prescaled inputs divided once by the sum of weights,
// and a premultiplied sum a sum of prescaled inputs: see Scaling in collective/run.h.
enum class ReduceOp : std::uint8_t { sum, product, average, min, max, bit_and, bit_or, bit_xor };
const char* name(ReduceOp op);

}  // namespace shoal

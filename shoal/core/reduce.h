// Adding slices: the SIMD loops under every reduction, chosen for this CPU at run time (Highway).
// Sums of f16 and bf16 are formed in f32 and rounded once per call; integers wrap. Every function gives the
// same bits on every target: element-wise, no fused multiply-add, no reassociation inside an element.
// Callers keep slices in L2 (16 to 256 KB); nothing here allocates or blocks. Threads: pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "shoal/core/dtype.h"

namespace shoal {

// into[i] = into[i] op from[i] for `count` elements. `average` adds, as sum does. into and from do not overlap.
void reduce(DType type, ReduceOp op, void* into, const void* from, std::size_t count);

// into[i] = (((from[0][i] op from[1][i]) op from[2][i]) ...): a left fold over the sources in their order, in one
// pass over memory. `into` may be one of the sources. 1 <= from.size(). f16/bf16 accumulate in f32 over all sources.
void fold(DType type, ReduceOp op, void* into, std::span<const void* const> from, std::size_t count);

// into[i] = from[i] * factor, computed in f32 (f64 for f64 and integers), rounded once. into may equal from.
void scale(DType type, void* into, const void* from, double factor, std::size_t count);

// into[i] = into[i] / divisor: a true division, so that equal weights give the plain mean bit for bit.
// Integers divide truncating towards zero (divisor is rounded to an integer first).
void divide(DType type, void* into, double divisor, std::size_t count);

}  // namespace shoal

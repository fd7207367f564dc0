// Sufficient factors. For a fully connected layer y = x Wᵀ + b, K samples leave the gradient of W as a sum of K outer products, gᵀ x. The
// rows of the layer's input x and of its output's gradient g say all of it in K (M + N) numbers, where the gradient has M N (Xie et al.,
// "Lighter-communication distributed machine learning via sufficient factor broadcasting", UAI 2016; Zhang et al., USENIX ATC 2017, 3.2).
//
// Every member sends its pair to every other. Each lays all pairs side by side in rank order and multiplies once: all have the same
// bits, those of one process that had the whole batch. What is saved on the wire is paid in arithmetic: every member multiplies all K P rows.
//
// Here are the nouns and what they cost; exchange moves them, and who owns a matrix library multiplies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shoal/core/dtype.h"

namespace shoal::factor {

// Of a layer: W is outputs x inputs (N x M), row-major.
struct Shape {
  std::uint64_t inputs = 0, outputs = 0;
  DType type = DType::f32;  // of the weight, and so of its gradient
  bool bf16_rows = false;   // x and g are bf16, in which the layer computes (autocast)

  DType row_type() const { return bf16_rows ? DType::bf16 : type; }
  std::uint64_t row_bytes() const { return (inputs + outputs) * size_of(row_type()); }  // of a sample's pair
  std::uint64_t dense_bytes() const { return inputs * outputs * size_of(type); }
};

// What one member has of a gradient in one iteration: gᵀ x + rest. The memory is the caller's.
struct Pair {
  std::uint64_t rows = 0;           // K
  const std::byte* x = nullptr;     // K x M, contiguous
  const std::byte* g = nullptr;     // K x N, contiguous
  const std::byte* rest = nullptr;  // N x M: what no pair explains, such as earlier passes gathered in .grad; nullptr: nothing
};

// What all members have: the mean is (sum over ranks of weight_r g_rᵀ x_r) / divisor + rest.
struct Gathered {
  std::vector<std::uint64_t> rows;  // by rank
  std::uint64_t total = 0;          // their sum
  const std::byte* x = nullptr;     // total x M, in rank order
  const std::byte* g = nullptr;     // total x N
  std::vector<double> weight;       // by rank; empty: all equal, and 1
  double divisor = 1;
  const std::byte* rest = nullptr;  // N x M, already the mean; nullptr: nobody has any
};

// Floating-point operations that a member of `ranks` does beyond those of its own backward pass, each with `rows` rows.
double extra_operations(const Shape& shape, std::uint64_t rows, std::uint32_t ranks);

// Poseidon's rule (Zhang et al., algorithm 1), for servers on the members' own machines: factors go over the wire if these are no more
// numbers than with servers, 2 K (P - 1)(M + N) <= 2 M N (2 P - 2) / P. It knows bytes only, and not what the multiplication costs.
bool fewer_numbers(const Shape& shape, std::uint64_t rows, std::uint32_t ranks);

}  // namespace shoal::factor

// A collective as its caller states it, and the part of that which members compare. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "shoal/collective/run.h"
#include "shoal/core/dtype.h"

namespace shoal::nn {

// As PyTorch names them in Python.
enum class Operation : std::uint8_t { broadcast, all_reduce, reduce, all_gather, gather, scatter, reduce_scatter, all_to_all, barrier };
const char* name(Operation operation);

struct Collect {
  Operation operation = Operation::all_reduce;
  DType type = DType::u8;                     // u8 where bytes only move
  ReduceOp op = ReduceOp::sum;
  collective::Scaling scaling;
  std::uint32_t root = 0;
  std::uint64_t total = 0;                    // elements of the whole vector; the same on all members
  bool comparable = true;                     // false: sizes differ between members (uneven all_to_all); total is then ours
  std::optional<collective::Layout> layout;   // absent: Layout::even
  collective::Buffers buffers;
};

// What a member believes a collective to be, in two words that travel in a note. Equal on all members, or they are wrong.
struct Descriptor {
  std::array<std::uint64_t, 2> words{};
  static Descriptor of(const Collect& what);
  std::string show() const;  // "all_reduce of 100 f32 (sum)"
  std::uint16_t digest() const;
  bool operator==(const Descriptor&) const = default;
};

}  // namespace shoal::nn

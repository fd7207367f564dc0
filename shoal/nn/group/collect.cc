#include "shoal/nn/group/collect.h"

#include <iterator>

#include "shoal/core/seed.h"

namespace shoal::nn {
namespace {

constexpr const char* kNames[] = {"broadcast", "all_reduce",     "reduce",     "all_gather", "gather",
                                  "scatter",   "reduce_scatter", "all_to_all", "barrier"};

bool adds(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce || operation == Operation::reduce_scatter;
}

bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather ||
         operation == Operation::scatter;
}

template <class Enum>
std::uint64_t number(Enum value) {
  return static_cast<std::uint64_t>(value);
}

}  // namespace

const char* name(Operation operation) { return kNames[number(operation)]; }

// First word: operation (8 bits), type (8), how it adds (8), comparable (8), root (32). Second: elements.
Descriptor Descriptor::of(const Collect& what) {
  const std::uint64_t op = adds(what.operation) ? number(what.op) : 0;
  const std::uint64_t root = has_root(what.operation) ? what.root : 0;
  return {{number(what.operation) | number(what.type) << 8 | op << 16 | std::uint64_t{what.comparable} << 24 | root << 32,
           what.comparable ? what.total : 0}};
}

std::string Descriptor::show() const {
  const std::uint64_t call = words[0] & 255, type = words[0] >> 8 & 255, op = words[0] >> 16 & 255;
  if (call >= std::size(kNames) || type > number(DType::boolean) || op > number(ReduceOp::bit_xor)) return "an unknown operation";
  const auto operation = static_cast<Operation>(call);
  std::string text = kNames[call];
  if (operation == Operation::barrier) return text;
  if (words[0] >> 24 & 1) text += " of " + std::to_string(words[1]) + " " + shoal::name(static_cast<DType>(type));
  if (adds(operation)) text += std::string(" (") + shoal::name(static_cast<ReduceOp>(op)) + ")";
  if (has_root(operation)) text += ", root " + std::to_string(words[0] >> 32);
  return text;
}

std::uint16_t Descriptor::digest() const {
  return static_cast<std::uint16_t>(random_words(words[0], words[1], 0, 0)[0]);
}

}  // namespace shoal::nn

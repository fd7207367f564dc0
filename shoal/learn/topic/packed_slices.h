// Slices one behind another as bytes, each with its number: parts of a model on their way to other members. Threads: one each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/learn/topic/slice.h"
#include "shoal/learn/topic/slicing.h"

namespace shoal::learn::topic {

class PackedSlices {
 public:
  void append(std::uint32_t number, const Slice& slice);
  Bytes take();  // all of them; here there is none then

 private:
  std::vector<std::byte> bytes_;
};

class SliceReader {
 public:
  // Of slices of that vocabulary, with fewer topics than `topics` says; both bytes and slicing outlive it.
  SliceReader(const Bytes& bytes, const Slicing& slicing, Topic topics) : rest_(bytes.data(), bytes.size()), slicing_(slicing), topics_(topics) {}

  bool done() const { return rest_.empty(); }
  // The next one and its number. Throws Error{mismatch} for what is none.
  std::unique_ptr<Slice> next(std::uint32_t& number);

 private:
  std::span<const std::byte> rest_;
  const Slicing& slicing_;
  Topic topics_;
};

}  // namespace shoal::learn::topic

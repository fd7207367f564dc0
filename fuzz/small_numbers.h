// Small numbers out of bytes: lists one after another, each behind its length. For what is read as the tensors of a file, which raw bytes seldom are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shoal/learn/tensor_file.h"

namespace shoal::fuzz {

class SmallNumbers {
 public:
  SmallNumbers(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  template <class Number>
  learn::TensorOf<Number> list() {
    learn::TensorOf<Number> tensor;
    for (std::size_t left = next() % 16; left > 0; --left) tensor.values.push_back(static_cast<Number>(next()));
    tensor.shape = {tensor.values.size()};
    return tensor;
  }

 private:
  std::uint8_t next() { return at_ == end_ ? 0 : *at_++; }
  const std::uint8_t *at_, *const end_;
};

}  // namespace shoal::fuzz

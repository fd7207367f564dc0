// What the group's tests share: collectives over plain vectors, and what became of an operation.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/nn/group/group.h"

namespace shoal::nn {

// What became of one operation. Read it where `done` cannot run at the same time.
struct Outcome {
  int ended = 0;
  net::Failure why;
  net::Rank source = 0;  // of a message

  net::Done done() {
    return [this](const net::Failure& failure) {
      ++ended;
      why = failure;
    };
  }
  Points::Received received() {
    return [this](const net::Failure& failure, net::Rank from) {
      ++ended;
      why = failure;
      source = from;
    };
  }
  // "open", "done", or the line of its error; a second end of the same operation shows too.
  std::string line() const {
    if (ended > 1) return "ended " + std::to_string(ended) + " times";
    return ended == 0 ? "open" : why ? why->what() : "done";
  }
};

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

// In place, as PyTorch's all_reduce.
inline Collect all_reduce(std::vector<std::int32_t>& values, ReduceOp op = ReduceOp::sum) {
  Collect what;
  what.operation = Operation::all_reduce;
  what.type = DType::i32;
  what.op = op;
  what.total = values.size();
  what.buffers = {bytes_of(values).data(), bytes_of(values).data()};
  return what;
}

inline Collect broadcast(std::vector<std::int32_t>& values, std::uint32_t root, net::Rank self) {
  Collect what;
  what.operation = Operation::broadcast;
  what.root = root;
  what.total = bytes_of(values).size();
  what.buffers = {root == self ? bytes_of(values).data() : nullptr, bytes_of(values).data()};
  return what;
}

// The root's values become the sum.
inline Collect reduce(std::vector<std::int32_t>& values, std::uint32_t root) {
  Collect what = all_reduce(values);
  what.operation = Operation::reduce;
  what.root = root;
  return what;
}

inline Collect barrier(std::vector<std::int32_t>& token) {
  Collect what = all_reduce(token);
  what.operation = Operation::barrier;
  what.type = DType::u8;
  what.total = bytes_of(token).size();
  return what;
}

}  // namespace shoal::nn

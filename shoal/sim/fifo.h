// First in, first out, for many short queues: the first value lies here, and others in memory of their own, which is kept. Most never have others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::sim {

template <class Value>
class Fifo {
 public:
  bool empty() const { return count_ == 0; }
  Value& front() { return first_; }
  void push(Value value) {
    if (count_++ == 0) {
      first_ = std::move(value);
    } else {
      if (!others_) others_ = std::make_unique<std::vector<Value>>();
      others_->push_back(std::move(value));
    }
  }
  Value pop() {
    Value value = std::move(first_);
    if (--count_ == 0) return value;
    auto& others = *others_;
    first_ = std::move(others[head_++]);
    if (head_ == others.size()) {
      others.clear();
      head_ = 0;
    } else if (head_ >= 64 && 2 * head_ >= others.size()) {
      others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return value;
  }

 private:
  Value first_{};
  std::uint32_t count_ = 0, head_ = 0;  // head_: of others_
  std::unique_ptr<std::vector<Value>> others_;
};

}  // namespace shoal::sim

// What ways have in common that take dense gradients and give a dense mean: the unit's tensors lie one after another in one vector. A single
// tensor is read where it lies. The mean comes into memory of its own, never into that in which the gradient was accumulated.
#pragma once

#include <vector>

#include "shoal/exchange/buffer.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/way.h"

namespace shoal::exchange {

class PackedFlow : public Flow {
 public:
  explicit PackedFlow(const Road& road);

  void take(std::size_t place, const Contribution& own) final;
  Mean mean(std::size_t place) final;
  std::shared_ptr<const void> memory() const final { return results_.share(); }

 protected:
  // The caller's thread: all tensors are taken; the mean is about to be read for the first time.
  virtual void seal() {}
  virtual void unseal() {}

  DType type() const { return type_; }
  std::uint64_t count() const { return count_; }  // elements
  std::uint64_t bytes() const { return count_ * size_of(type_); }
  bool has_any() const { return has_any_; }       // this member has a gradient of any of the tensors
  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }

 private:
  DType type_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> offset_, size_;  // bytes, by place
  Buffer packed_;
  Results results_;

  // This iteration's.
  std::size_t taken_ = 0;
  bool has_any_ = false, sealed_ = false;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
};

}  // namespace shoal::exchange

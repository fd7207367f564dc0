#include "shoal/exchange/packed_flow.h"

#include <algorithm>
#include <variant>

#include "shoal/core/error.h"

namespace shoal::exchange {

PackedFlow::PackedFlow(const Road& road)
    : Flow(road.runner),
      type_(road.plan.tensors[road.unit.tensors.front()].type),
      packed_(road.runner.transport()),
      results_(road.runner.transport()) {
  for (const auto t : road.unit.tensors) {
    offset_.push_back(bytes());
    count_ += road.plan.tensors[t].count;
    size_.push_back(bytes() - offset_.back());
  }
}

void PackedFlow::take(std::size_t place, const Contribution& own) {
  if (taken_ == 0) {
    has_any_ = false;
    results_.begin();
  }
  const auto* const dense = std::get_if<const std::byte*>(&own);
  if (!dense && !std::holds_alternative<std::monostate>(own)) throw Error(Code::internal, "a way that takes dense gradients is given another form");
  has_any_ = has_any_ || dense;
  if (dense) results_.avoid(*dense, bytes());
  if (dense && size_.size() == 1) {
    input_ = *dense;
  } else {
    std::byte* const packed = packed_.get(bytes());
    input_ = packed;
    if (dense) {
      std::copy_n(*dense, size_[place], packed + offset_[place]);
    } else {
      std::fill_n(packed + offset_[place], size_[place], std::byte{0});
    }
  }
  if (++taken_ < size_.size()) return;
  taken_ = 0;
  output_ = results_.get(bytes());  // here, where whoever asked hears that there is no memory
  seal();
  sealed_ = true;
}

Mean PackedFlow::mean(std::size_t place) {
  if (sealed_) unseal();
  sealed_ = false;
  return output_ + offset_[place];
}

}  // namespace shoal::exchange

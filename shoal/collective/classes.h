// Which numbers belong together, when one is told pairs that do: union-find with halved paths. The lowest number of each class stands for it. Internal to
// the verifier. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace shoal::collective {

class Classes {
 public:
  explicit Classes(std::uint32_t count) : lowest_(count) { std::iota(lowest_.begin(), lowest_.end(), 0U); }

  std::uint32_t find(std::uint32_t k) {
    while (lowest_[k] != k) k = lowest_[k] = lowest_[lowest_[k]];
    return k;
  }
  std::uint32_t join(std::uint32_t a, std::uint32_t b) {  // who stands for both
    const auto [low, high] = std::minmax({find(a), find(b)});
    return lowest_[high] = low;
  }
  std::vector<std::uint32_t> take() {  // [number]: who stands for it
    for (std::uint32_t k = 0; k < lowest_.size(); ++k) lowest_[k] = find(k);
    return std::move(lowest_);
  }

 private:
  std::vector<std::uint32_t> lowest_;
};

}  // namespace shoal::collective

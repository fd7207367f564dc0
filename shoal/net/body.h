// Memory on its way to who takes it (Transport::take): some of its own; or, as long as all that has come was given by a member of this host and lies
// there in one piece, that, for as long as somebody holds it. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "shoal/core/bytes.h"

namespace shoal::net {

using Loan = std::shared_ptr<const void>;  // what was given goes back with the last one

class Body {
 public:
  explicit Body(std::size_t size) : own_(size) {}
  const Bytes& own() const { return own_; }

  // The next bytes stay where they are; otherwise they would go to `into`. false: they are no piece with what has come.
  bool keep(std::span<const std::byte> bytes, std::span<std::byte> into, Loan loan) {
    if (kept_.empty() && reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::max_align_t) != 0) return false;  // as all memory is
    if (into.data() != own_.data() + kept_.size() || (!kept_.empty() && bytes.data() != kept_.data() + kept_.size())) return false;
    kept_ = {kept_.empty() ? bytes.data() : kept_.data(), kept_.size() + bytes.size()};
    loans_.push_back(std::move(loan));
    return true;
  }
  // Some that follow do not stay: what has come goes where it belongs.
  void copy() {
    if (kept_.empty()) return;
    std::memcpy(own_.data(), kept_.data(), kept_.size());
    kept_ = {};
    loans_.clear();
  }
  // When all has come.
  Bytes all() const {
    if (kept_.empty()) return own_;
    const auto loans = std::make_shared<const std::vector<Loan>>(loans_);
    return {std::shared_ptr<std::byte[]>(loans, const_cast<std::byte*>(kept_.data())), kept_.size()};  // take() says that nobody writes there
  }

 private:
  Bytes own_;
  std::span<const std::byte> kept_;
  std::vector<Loan> loans_;
};

}  // namespace shoal::net

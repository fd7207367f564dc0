#include "shoal/net/loans.h"

#include <algorithm>
#include <utility>

namespace shoal::net {

void Borrowed::give_back(std::uint64_t number) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = back_.empty();
    if (!first && back_.back().first + back_.back().count == number) {
      ++back_.back().count;
    } else {
      back_.push_back({number, 1});
    }
  }
  if (!first) return;
  post_([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->say_) self->say_();
  });
}

std::vector<wire::Returned> Borrowed::take_returned() {
  const std::lock_guard lock(mutex_);
  const auto end = back_.begin() + static_cast<std::ptrdiff_t>(std::min(back_.size(), wire::kReturnedPerFrame));
  std::vector<wire::Returned> some(back_.begin(), end);
  back_.erase(back_.begin(), end);
  return some;
}

Given::~Given() {
  static std::mutex mutex;
  static auto& kept = *new std::deque<Bytes>;   // for good
  const std::lock_guard lock(mutex);
  for (Bytes& bytes : held_) {
    if (!bytes.empty()) kept.push_back(std::move(bytes));
  }
}

bool Given::take_back(const wire::Returned& returned) {
  if (returned.first < first_ || returned.first - first_ > held_.size() || returned.count > held_.size() - (returned.first - first_)) return false;
  for (std::uint64_t i = 0; i < returned.count; ++i) {
    Bytes& bytes = held_[returned.first - first_ + i];
    if (bytes.empty()) return false;
    bytes = {};
  }
  while (!held_.empty() && held_.front().empty()) {
    held_.pop_front();
    ++first_;
  }
  return true;
}

}  // namespace shoal::net

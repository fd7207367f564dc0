#include "shoal/net/losses.h"

#include <algorithm>

namespace shoal::net {

void Losses::silent(Rank a, Rank b, Instant now) {
  if (lost_[a] || lost_[b]) return;
  links_.emplace(std::min(a, b), std::max(a, b));
  if (!due_) due_ = now + patience_;
}

bool Losses::lose(Rank rank) {
  if (lost_[rank]) return false;
  lost_[rank] = true;
  std::erase_if(links_, [&](const auto& link) { return link.first == rank || link.second == rank; });
  if (links_.empty()) due_.reset();
  return true;
}

std::vector<Rank> Losses::conclude(Instant now) {
  std::vector<Rank> gone;
  if (!due_ || now < *due_) return gone;
  due_.reset();
  while (!links_.empty()) {
    std::vector<std::size_t> silent(lost_.size());
    for (const auto& [a, b] : links_) {
      ++silent[a];
      ++silent[b];
    }
    const auto most = std::max_element(silent.rbegin(), silent.rend());  // the highest rank of several
    const auto rank = static_cast<Rank>(silent.rend() - most - 1);
    lose(rank);
    gone.push_back(rank);
  }
  return gone;
}

}  // namespace shoal::net

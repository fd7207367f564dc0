#include "shoal/topo/fair_shares.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace shoal::topo {
namespace {

constexpr double kRounding = 1e-9;  // of a capacity: what is left below it is nothing

}  // namespace

void FairShares::clear() {
  links_.clear();
  flows_.clear();
  path_.clear();
  levels_ = 0;
}

std::uint32_t FairShares::add_link(double capacity) {
  links_.push_back({capacity, capacity, 0, 0});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

std::uint32_t FairShares::add_flow(std::span<const std::uint32_t> links, std::uint32_t level, double cap) {
  flows_.push_back({static_cast<std::uint32_t>(path_.size()), static_cast<std::uint32_t>(links.size()), level, cap, 0, false});
  path_.insert(path_.end(), links.begin(), links.end());
  levels_ = std::max(levels_, level + 1);
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void FairShares::cross() {
  for (const std::uint32_t link : path_) ++links_[link].first;
  std::uint32_t end = 0;
  for (Link& link : links_) link.first = end += link.first;  // one past its last; counted down below
  crossing_.resize(path_.size());
  for (auto flow = static_cast<std::uint32_t>(flows_.size()); flow-- > 0;) {
    for (const std::uint32_t link : path(flows_[flow])) crossing_[--links_[link].first] = flow;
  }
}

void FairShares::solve() {
  cross();
  for (std::uint32_t level = 0; level < levels_; ++level) fill(level);
}

void FairShares::stop(std::uint32_t flow, double rate) {
  flows_[flow].rate = rate;
  flows_[flow].settled = true;
  for (const std::uint32_t at : path(flows_[flow])) {
    Link& link = links_[at];
    link.left -= rate;
    if (link.left < kRounding * link.capacity) link.left = 0;
    --link.rising;
  }
}

void FairShares::fill(std::uint32_t level) {
  capped_.clear();
  std::size_t rising = 0;
  for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) {
    if (flows_[flow].level != level) continue;
    ++rising;
    for (const std::uint32_t link : path(flows_[flow])) ++links_[link].rising;
    if (std::isfinite(flows_[flow].cap)) capped_.push_back(flow);
  }
  std::sort(capped_.begin(), capped_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::pair(flows_[a].cap, a) < std::pair(flows_[b].cap, b);
  });
  shares_.clear();
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    if (links_[link].rising > 0) shares_.emplace_back(links_[link].left / links_[link].rising, link);
  }
  std::make_heap(shares_.begin(), shares_.end(), std::greater<>());

  std::size_t next_cap = 0;
  while (rising > 0) {
    while (next_cap < capped_.size() && flows_[capped_[next_cap]].settled) ++next_cap;
    const double cap = next_cap < capped_.size() ? flows_[capped_[next_cap]].cap : std::numeric_limits<double>::infinity();
    if (shares_.empty() || cap <= shares_.front().first) {  // shares only grow: no link fills up before
      stop(capped_[next_cap], cap);
      --rising;
      continue;
    }
    std::pop_heap(shares_.begin(), shares_.end(), std::greater<>());
    const auto [was, at] = shares_.back();
    shares_.pop_back();
    Link& link = links_[at];
    if (link.rising == 0) continue;
    const double share = link.left / link.rising;
    if (share > was * (1 + kRounding)) {
      shares_.emplace_back(share, at);
      std::push_heap(shares_.begin(), shares_.end(), std::greater<>());
      continue;
    }
    const std::uint32_t end = at + 1 < links_.size() ? links_[at + 1].first : static_cast<std::uint32_t>(crossing_.size());
    for (std::uint32_t i = link.first; i < end && link.rising > 0; ++i) {
      const std::uint32_t flow = crossing_[i];
      if (flows_[flow].level != level || flows_[flow].settled) continue;
      stop(flow, share);
      --rising;
    }
    link.left = 0;
  }
}

}  // namespace shoal::topo

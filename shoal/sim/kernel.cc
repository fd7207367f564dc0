#include "shoal/sim/kernel.h"

#include <algorithm>
#include <cmath>

namespace shoal::sim {
namespace {

constexpr double kMoment = 1e-12;     // seconds; and as a share of the time, which has 53 bits
constexpr double kSameRate = 1e-12;   // of a rate: rounding

}  // namespace

Kernel::Kernel(std::vector<double> capacities) : links_(capacities.size()) {
  for (std::size_t link = 0; link < links_.size(); ++link) links_[link].capacity = capacities[link];
}

void Kernel::timer(double when, std::uint64_t token) { queue_.push(std::max(when, now_), {token, 0, false}); }

std::uint32_t Kernel::flow(std::span<const std::uint32_t> links, double bytes, std::uint64_t token, std::uint32_t priority, double cap) {
  std::uint32_t number = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[number];
  flow.links = links.data();
  flow.hops = static_cast<std::uint32_t>(links.size());
  for (std::uint32_t hop = 0; hop < std::min(flow.hops, kNear); ++hop) flow.near_links[hop] = links[hop];
  if (flow.hops > kNear) flow.places.resize(flow.hops - kNear);
  flow.left = bytes;
  flow.rate = 0;
  flow.since = now_;
  flow.cap = cap;
  flow.token = token;
  flow.priority = priority;
  flow.open = true;
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    auto& flows = links_[flow.link(hop)].flows;
    flow.place(hop) = static_cast<std::uint32_t>(flows.size());
    flows.push_back({number, hop});
  }
  begun_.push_back(number);
  return number;
}

void Kernel::cancel(std::uint32_t number) {
  settle(flows_[number]);
  flows_[number].left = 0;
  remove(number);
}

void Kernel::set_capacity(std::uint32_t link, double capacity) {
  links_[link].capacity = capacity;
  left_behind_.push_back(link);
}

bool Kernel::next(Event& event) {
  while (true) {
    while (!queue_.empty() && queue_.front().is_flow && flows_[queue_.front().token].version != queue_.front().version) queue_.pop();
    const bool simultaneous = !queue_.empty() && queue_.when() <= now_ + kMoment * (1 + now_);
    if (simultaneous || (begun_.empty() && left_behind_.empty())) break;
    share();
  }
  if (queue_.empty()) return false;
  now_ = std::max(now_, queue_.when());
  const Scheduled first = queue_.front();
  queue_.pop();
  event.kind = first.is_flow ? Event::Kind::flow : Event::Kind::timer;
  event.token = first.token;
  if (!first.is_flow) return true;
  event.token = flows_[first.token].token;
  remove(static_cast<std::uint32_t>(first.token));
  return true;
}

void Kernel::settle(Flow& flow) {
  const double moved = std::min(flow.rate * (now_ - flow.since), flow.left);
  flow.since = now_;
  if (moved <= 0) return;
  flow.left -= moved;
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) links_[flow.link(hop)].carried += moved;
}

double Kernel::carried(std::uint32_t link) const {
  double bytes = links_[link].carried;
  for (const Crossing& crossing : links_[link].flows) {
    const Flow& flow = flows_[crossing.flow];
    bytes += std::min(flow.rate * (now_ - flow.since), flow.left);
  }
  return bytes;
}

void Kernel::set_rate(std::uint32_t number, double rate) {
  Flow& flow = flows_[number];
  if (std::abs(rate - flow.rate) <= kSameRate * flow.rate && flow.rate > 0) return;
  settle(flow);
  flow.rate = rate;
  ++flow.version;
  if (rate > 0 && std::isfinite(flow.left)) queue_.push(now_ + flow.left / rate, {number, flow.version, true});
}

void Kernel::remove(std::uint32_t number) {
  Flow& flow = flows_[number];
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    Link& link = links_[flow.link(hop)];
    link.carried += flow.left;
    if (link.flows.size() > 1) {
      const Crossing last = link.flows.back();
      const std::uint32_t freed = flow.place(hop);
      link.flows[freed] = last;
      flows_[last.flow].place(last.hop) = freed;
      left_behind_.push_back(flow.link(hop));
    }
    link.flows.pop_back();
  }
  ++flow.version;
  flow.open = false;
  free_.push_back(number);
}

bool Kernel::alone(const Flow& flow) const {
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    if (links_[flow.link(hop)].flows.size() > 1) return false;
  }
  return true;
}

void Kernel::share() {
  ++solves_;
  for (const std::uint32_t number : begun_) {
    const Flow& flow = flows_[number];
    if (!flow.open || flow.seen == solves_) continue;
    if (!alone(flow)) {
      share_with(flow.link(0));
      continue;
    }
    double rate = flow.cap;
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) rate = std::min(rate, links_[flow.link(hop)].capacity);
    set_rate(number, rate);
  }
  begun_.clear();
  for (const std::uint32_t link : left_behind_) {
    if (!links_[link].flows.empty() && links_[link].seen != solves_) share_with(link);
  }
  left_behind_.clear();
}

void Kernel::share_with(std::uint32_t first) {
  // Breadth first over links and their flows.
  reached_.clear();
  reached_links_.assign(1, first);
  links_[first].seen = solves_;
  shares_.clear();
  for (std::size_t next = 0; next < reached_links_.size(); ++next) {
    Link& link = links_[reached_links_[next]];
    link.number = shares_.add_link(link.capacity);
    for (const Crossing& crossing : link.flows) {
      Flow& flow = flows_[crossing.flow];
      if (flow.seen == solves_) continue;
      flow.seen = solves_;
      reached_.push_back(crossing.flow);
      for (const std::uint32_t other : std::span(flow.links, flow.hops)) {
        if (links_[other].seen == solves_) continue;
        links_[other].seen = solves_;
        reached_links_.push_back(other);
      }
    }
  }
  set_levels();
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    const Flow& flow = flows_[reached_[i]];
    path_.clear();
    for (const std::uint32_t link : std::span(flow.links, flow.hops)) path_.push_back(links_[link].number);
    shares_.add_flow(path_, levels_[i], flow.cap);
  }
  shares_.solve();
  for (std::uint32_t i = 0; i < reached_.size(); ++i) set_rate(reached_[i], shares_.rate(i));
  solved_ += reached_.size();
}

// A flow's level: how many lower priority numbers its first link has among the flows that enter there.
void Kernel::set_levels() {
  levels_.assign(reached_.size(), 0);
  const auto lowest = std::ranges::minmax(reached_, {}, [this](std::uint32_t flow) { return flows_[flow].priority; });
  if (flows_[lowest.min].priority == flows_[lowest.max].priority) return;
  std::vector<std::uint32_t> order(reached_.size());  // by first link, then by priority
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [this](std::uint32_t i) {
    const Flow& flow = flows_[reached_[i]];
    return std::pair(flow.link(0), flow.priority);
  };
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(key(i), i); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto before = key(order[i - 1]), here = key(order[i]);
    if (here.first == before.first) levels_[order[i]] = levels_[order[i - 1]] + (here.second != before.second);
  }
}

}  // namespace shoal::sim

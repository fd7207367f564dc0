#include "shoal/packing/rings.h"

#include <fmt/format.h>

#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::packing {

namespace {

constexpr std::uint64_t kMostRingSteps = 20'000'000;

class RingSearch {
 public:
  RingSearch(const Network& network, double unit) : hosts_(network.hosts()), left_(hosts_, std::vector<std::uint32_t>(hosts_, 0)), links_(hosts_, 0) {
    for (const Arc& arc : network.arcs()) {
      if (arc.reverse == kNoArc) continue;
      const double rate = std::min(arc.rate, network.arcs()[arc.reverse].rate);
      left_[arc.from][arc.to] = static_cast<std::uint32_t>(std::min(rate / unit + 1e-9, 1e6));
      links_[arc.from] += left_[arc.from][arc.to];
    }
  }

  std::vector<std::vector<Node>> most() {
    for (std::uint32_t wanted = *std::min_element(links_.begin(), links_.end()) / 2; wanted > 0; --wanted) {
      if (find(wanted)) return rings_;
    }
    return {};
  }

 private:
  // That many more. Rings come in lexicographic order and the lesser way round: no set of them is tried twice.
  bool find(std::uint32_t wanted) {
    if (wanted == 0) return true;
    if (*std::min_element(links_.begin(), links_.end()) < 2 * wanted) return false;
    std::vector<Node> ring{0};
    std::vector<bool> on(hosts_, false);
    on[0] = true;
    return extend(ring, on, !rings_.empty(), wanted);
  }

  // `tight`: so far the ring before this one, so it must not go on by a lesser host.
  bool extend(std::vector<Node>& ring, std::vector<bool>& on, bool tight, std::uint32_t wanted) {
    if (++steps_ > kMostRingSteps) throw Error(Code::unsupported, fmt::format("too many ways to lay rings over {} hosts", hosts_), "rings");
    if (ring.size() == hosts_) return left_[ring.back()][0] > 0 && ring[1] < ring.back() && close(ring, wanted);
    if (!can_be_passed(ring, on)) return false;
    const std::size_t place = ring.size();
    for (Node next = tight ? rings_.back()[place] : 1; next < hosts_; ++next) {
      if (on[next] || left_[ring.back()][next] == 0) continue;
      ring.push_back(next);
      on[next] = true;
      if (extend(ring, on, tight && next == rings_.back()[place], wanted)) return true;
      on[next] = false;
      ring.pop_back();
    }
    return false;
  }

  // Every host that the ring has not come to has two neighbours to be entered from and left to: others, or an end of the ring.
  bool can_be_passed(const std::vector<Node>& ring, const std::vector<bool>& on) const {
    for (Node host = 0; host < hosts_; ++host) {
      if (on[host]) continue;
      std::uint32_t ways = 0;
      for (Node other = 0; other < hosts_; ++other) {
        const std::uint32_t links = left_[host][other];
        if (links == 0 || (on[other] && other != 0 && other != ring.back())) continue;
        ways += other == 0 && ring.size() == 1 ? std::min(links, 2U) : 1;   // both ends are one host yet
      }
      if (ways < 2) return false;
    }
    return true;
  }

  bool close(const std::vector<Node>& ring, std::uint32_t wanted) {
    rings_.push_back(ring);
    use(ring, true);
    if (find(wanted - 1)) return true;
    use(ring, false);
    rings_.pop_back();
    return false;
  }

  void use(const std::vector<Node>& ring, bool taken) {
    for (std::size_t k = 0; k < ring.size(); ++k) {
      const Node a = ring[k], b = ring[(k + 1) % ring.size()];
      for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
        taken ? --left_[from][to] : ++left_[from][to];
        taken ? --links_[from] : ++links_[from];
      }
    }
  }

  const std::uint32_t hosts_;
  std::vector<std::vector<std::uint32_t>> left_;   // [host][host]: links in no ring
  std::vector<std::uint32_t> links_;               // [host]: of them
  std::vector<std::vector<Node>> rings_;
  std::uint64_t steps_ = 0;
};

}  // namespace

std::vector<std::vector<Node>> most_rings(const Network& network, double unit) {
  if (network.hosts() < 3 || network.hosts() > kMostRingHosts) {
    throw Error(Code::unsupported, fmt::format("rings over {} hosts; 3 to {}", network.hosts(), kMostRingHosts), "rings");
  }
  if (!network.direct()) throw Error(Code::unsupported, "rings over links through switches", "rings");
  return RingSearch(network, unit).most();
}

RingRates ring_rates(std::uint32_t hosts, std::uint32_t rings, double fallback) {
  if (rings == 0) return {fallback, fallback};
  return {2.0 * rings, 2.0 * rings * hosts / (2.0 * (hosts - 1))};
}

}  // namespace shoal::packing

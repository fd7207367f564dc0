#include "shoal/net/health.h"

#include <algorithm>

namespace shoal::net {

Health::Health(Rank size, Rank self, const HealthLimits& limits, Instant now)
    : peers_(size, Peer{now}), limits_(limits), last_tick_(now) {
  peers_[self].present = false;
}

void Health::heard(Rank peer, Instant now) {
  peers_[peer].heard = now;
  peers_[peer].suspected = false;
}

void Health::left(Rank peer) { peers_[peer].present = false; }

Health::Verdict Health::tick(Instant now) {
  const Nanoseconds late = now - last_tick_ - limits_.heartbeat;
  last_tick_ = now;
  if (late > limits_.heartbeat) {
    for (Peer& peer : peers_) peer.heard = std::min(now, peer.heard + late);
  }
  Verdict verdict;
  Rank present = 0, audible = 0;
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.present) continue;
    ++present;
    const Nanoseconds silence = now - peer.heard;
    // Two heartbeats may be late; a third says that the peer is not heard at present.
    if (silence < 3 * limits_.heartbeat) ++audible;
    if (silence >= limits_.suspect && !peer.suspected) {
      peer.suspected = true;
      verdict.suspects.push_back(rank);
    }
    if (silence >= limits_.dead) verdict.dead.push_back(rank);
  }
  std::ranges::stable_sort(verdict.dead, {}, [&](Rank rank) { return peers_[rank].heard; });
  verdict.cut_off = !verdict.dead.empty() && present > 1 && audible == 0;
  return verdict;
}

}  // namespace shoal::net

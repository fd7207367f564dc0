// A job inside one process, on a network that a test scripts: delays, rates, reordering between
// connections, links that vanish, and a clock that only moves when nothing else can happen. One seed decides
// everything; the same seed gives the same run.
//
// All members share one thread, the caller of run() or of a member's drive(). Code under test is the real code: it
// only sees Transport. A killed or frozen member's handlers do not run any more, as a dead process's would not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::net {

struct ScriptedNetwork {
  std::uint64_t seed = 1;
  Nanoseconds delay_min{20'000}, delay_max{200'000};  // one way, drawn per frame; order holds inside a connection only
  double rate = 125e6;                // bytes/s of each member's link, per direction; 0: endless. One's own: InprocJob::rate()
  double burst = 0;                   // bytes that a link saves up while it is idle and then passes at once, as a token bucket; per direction
  std::size_t frame = 16 * 1024;      // bytes
  OnPeerLost on_peer_lost = OnPeerLost::fail;
  std::size_t eager = 64 * 1024;      // bytes of a stream sent before the receiver has asked
};

class InprocMember;

class InprocJob {
 public:
  explicit InprocJob(Rank size, const ScriptedNetwork& network = {});
  ~InprocJob();
  Transport& member(Rank rank);
  // Runs handlers, frames and timers in time order until nothing is left to happen or `until` is true.
  // Returns true if `until` became true (or was empty and the network fell idle).
  bool run(const std::function<bool()>& until = {});
  Instant now() const;
  // Faults, at the current moment or (at) later on the scripted clock.
  void at(Nanoseconds after_start, std::function<void()> fn);
  void kill(Rank rank);               // its connections close behind what it sent; survivors get peer_lost
  void cut(Rank a, Rank b);           // nothing passes any more, no close: found by 5 s of silence
  void rate(Rank rank, double bytes_a_second);  // its link from now on, in both directions
  void freeze(Rank rank);             // as SIGSTOP: never acts again; found by 5 s of silence
  std::uint64_t bytes_sent(Rank from, Rank to) const;  // payload

 private:
  friend class InprocMember;
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace shoal::net

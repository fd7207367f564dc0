// What is known of the links between members, in the few figures that prices and plans go by (select.h): measured (probe.h), said, or concluded from a
// network that is known link by link. Values.
#pragma once

#include <memory>

namespace shoal::collective {

class KnownNetwork;
class Tuning;

struct LinkModel {
  double alpha = 100e-6;        // seconds a step in which members send in pairs: send, wire, wake-up of the receiver
  double rate = 125e6;          // bytes/s a member, per direction, with one flow in and one out (ring)
  double add_rate = 8e9;        // bytes/s one member adds from L2
  // bytes/s a member receives when all others send to it at once (direct). Below `rate` where flows meet in a slow link, above
  // it between processes of one machine, where every byte is then added in one pass. 0: not measured, 0.8 rate is taken.
  double fan_in = 0;
  // Seconds a step in which all send to all: more messages than a pair's, on cores that members share. 0: not measured, alpha.
  double fan_in_alpha = 0;
  // Bytes that a member's link has saved up after a pause, and then passes at once: that of a token bucket, by which cloud machines and labs limit links.
  // Sums by themselves do not count on it; who knows of pauses does (exchange/timeline.h). 0: none.
  double saves = 0;
  // The network link by link, where it is known: then the fullest link's rate on it counts instead of `rate`, for groups of all its hosts.
  std::shared_ptr<const KnownNetwork> network{};
  std::shared_ptr<const Tuning> tuning{};  // what goes before prices, where it can be had

  // What is typical between processes of one machine, until it is measured.
  static LinkModel one_machine() { return {.alpha = 30e-6, .rate = 1.2e9, .add_rate = 8e9, .fan_in = 1.8e9, .fan_in_alpha = 60e-6}; }
};

}  // namespace shoal::collective

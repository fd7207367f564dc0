// What a member's own link gives while a run goes on, out and in, from the bytes that pass anyway: no probe, no byte more.
//
// Of each frame its sender says whether it was ready when the one before to the same member had left (net::Trains). Then nothing but the network decided
// when it came after the other, and the dispersion of such trains tells how fast that was (Dovrolis, Ramanathan and Moore, "Packet-dispersion techniques and
// a capacity-estimation methodology", IEEE/ACM Transactions on Networking 12(6), 2004). A sender that computes, waits for a third member or to be asked breaks
// its train and does not count. Flows share links, by turns with more or fewer others, so the rate of one says little; what passes beside it counts, too:
//
//     rate out = most over the members that it is sent to of (all bytes that this member sent / seconds) while a train to that member was on its way; in alike
//
// is what the link carried while it, or what lies behind it for all of its flows, was the limit. A link that saves up while it is idle (a token bucket) gives
// short trains more than its rate: so a rate is held against the same link's under the same plan, and never believed above what was measured.
//
// A sample is of trains of kSample bytes or more; kWindow of them are a window, whose median is the rate. The first window is what the link is like; when
// kPatience windows in a row are off by more than kMatters, all above or all below, its rate has changed. (exchange/drift.h says when a plan follows.)
//
// LinkRates is one member's; bounded, a look costs some ten nanoseconds a member. The rest is pure. Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/link_model.h"
#include "shoal/net/transport.h"

namespace shoal::collective {

struct LinkRate {          // bytes/s; 0: not known
  double first = 0;        // in the first window
  double now = 0;          // after the last change
  bool carries = false;    // so much has passed over it that its rate matters
  bool operator==(const LinkRate&) const = default;
};
struct LinkRatesOf {       // a member's
  LinkRate out, in;
  bool operator==(const LinkRatesOf&) const = default;
};

class LinkRates {
 public:
  static constexpr std::uint64_t kSample = 256 * 1024;
  static constexpr std::size_t kWindow = 16;
  static constexpr double kMatters = 0.25;
  static constexpr int kPatience = 2;

  explicit LinkRates(std::size_t members) : out_(members), in_(members) {}

  struct Change {
    bool goes_out;
    double now, was;
  };
  // Totals of what passed to and from each member, after each iteration or so.
  std::vector<Change> look(std::span<const net::LinkStats> totals);
  // By another plan: the first window is the next one.
  void begin_again();

  LinkRatesOf rates() const { return {out_.rate, in_.rate}; }

 private:
  struct Direction {
    explicit Direction(std::size_t members) : last(members) {}
    std::optional<double> sample(std::span<const net::LinkStats> totals, net::Trains net::LinkStats::*trains);
    std::optional<Change> took(double sample, bool goes_out);

    LinkRate rate;
    std::vector<net::Trains> last;             // to or from each member, as of the last sample
    std::array<double, kWindow> window{};
    std::size_t samples = 0;                   // in it
    int off = 0;                               // windows in a row that were off, below zero: that were slower
  };

  Direction out_, in_;
  std::optional<std::uint64_t> sent_, received_;  // over links, when the plan's first look was
};

// How a member tells its rates, and how all are heard. Throws Error{invalid_argument}.
std::string words(const LinkRatesOf& own);
std::vector<LinkRatesOf> heard_rates(std::span<const std::string> words);

// The links as all members' rates say, `known` being what was known of them when these were first seen, and `measured` when they were last measured, which
// nothing exceeds. A rate that has changed is taken for a change of its member's own links, those that lead from its host to where ways part. A ring shows
// that a way is slow, not which end of it: then both are taken to be, and what goes by others is priced too dear, never too cheap. `rate` and
// `fan_in` follow the slowest of all members' rates.
// nullopt: rates explain nothing. None has changed, one that matters is not known, or hosts have several links each, or share, some of them,
// what leads on from their switch: racks, members on one machine.
std::optional<LinkModel> as_seen(const LinkModel& known, const LinkModel& measured, std::span<const LinkRatesOf> rates);

}  // namespace shoal::collective

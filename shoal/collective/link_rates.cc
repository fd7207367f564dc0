#include "shoal/collective/link_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "shoal/collective/hosts.h"
#include "shoal/collective/known_network.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

constexpr std::uint64_t kCarries = LinkRates::kWindow * LinkRates::kSample;  // bytes by one plan that make a link matter

double middle_of(std::array<double, LinkRates::kWindow> window) {
  const auto middle = window.begin() + window.size() / 2;
  std::nth_element(window.begin(), middle, window.end());
  return *middle;
}

bool differs(double now, double was) { return std::abs(now - was) > LinkRates::kMatters * was; }

// Of a host, one direction: the links one after another from it, or to it, to where ways part; empty where they do at once.
std::vector<std::uint32_t> own_links(const topo::Topology& topology, topo::Node host, bool goes_out) {
  std::vector<std::uint32_t> own;
  topo::Node before = host, at = host;
  for (;;) {
    std::vector<std::uint32_t> onward;
    for (std::uint32_t link = 0; link < topology.links.size(); ++link) {
      const auto [near, far] = goes_out ? std::pair(topology.links[link].from, topology.links[link].to)
                                        : std::pair(topology.links[link].to, topology.links[link].from);
      if (near == at && (far != before || at == host)) onward.push_back(link);
    }
    if (onward.size() != 1) return own;
    own.push_back(onward.front());
    const topo::Link& link = topology.links[onward.front()];
    before = std::exchange(at, goes_out ? link.to : link.from);
    if (at < topology.hosts.size()) return own;
  }
}

std::optional<topo::Topology> network_as_seen(const topo::Topology& known, const topo::Topology& measured, std::span<const LinkRatesOf> rates) {
  if (are_shared(hosts_in(known))) return {};  // what leads on from their switch may be what limits
  topo::Topology seen = known;
  for (topo::Node host = 0; host < rates.size(); ++host) {
    for (const bool goes_out : {false, true}) {
      const LinkRate& rate = goes_out ? rates[host].out : rates[host].in;
      if (!rate.carries || !differs(rate.now, rate.first)) continue;
      const auto own = own_links(known, host, goes_out);
      if (own.empty()) return {};
      double narrowest = std::numeric_limits<double>::infinity();
      for (const std::uint32_t link : own) narrowest = std::min(narrowest, known.links[link].rate);
      const double now = narrowest * rate.now / rate.first;
      for (const std::uint32_t link : own) {
        double& its = seen.links[link].rate;
        its = rate.now < rate.first ? std::min(its, now) : std::max(its, std::min(now, measured.links[link].rate));
      }
    }
  }
  return seen;
}

}  // namespace

std::optional<double> LinkRates::Direction::sample(std::span<const net::LinkStats> totals, net::Trains net::LinkStats::*trains) {
  const auto since = [&](std::size_t member) { return (totals[member].*trains).bytes - last[member].bytes; };
  std::uint64_t most = 0;
  for (std::size_t member = 0; member < last.size(); ++member) most = std::max(most, since(member));
  if (most < kSample) return {};
  double fastest = 0;
  for (std::size_t member = 0; member < last.size(); ++member) {
    const net::Trains& now = totals[member].*trains;
    const double seconds = now.seconds - last[member].seconds;
    if (since(member) >= kSample / 4 && seconds > 0) fastest = std::max(fastest, static_cast<double>(now.beside - last[member].beside) / seconds);
    last[member] = now;
  }
  return fastest;
}

std::optional<LinkRates::Change> LinkRates::Direction::took(double sample, bool goes_out) {
  window[samples++] = sample;
  if (samples < kWindow) return {};
  samples = 0;
  const double median = middle_of(window);
  if (rate.first == 0) rate.first = rate.now = median;
  if (!differs(median, rate.now)) {
    off = 0;
  } else {
    off = median > rate.now ? std::max(off, 0) + 1 : std::min(off, 0) - 1;
  }
  if (std::abs(off) < kPatience) return {};
  off = 0;
  const double was = std::exchange(rate.now, median);
  return Change{goes_out, median, was};
}

std::vector<LinkRates::Change> LinkRates::look(std::span<const net::LinkStats> totals) {
  std::uint64_t sent = 0, received = 0;
  for (const net::LinkStats& now : totals) {
    if (!now.shared_memory) sent += now.sent, received += now.received;
  }
  if (!sent_) {
    sent_ = sent, received_ = received;
    for (std::size_t member = 0; member < totals.size(); ++member) out_.last[member] = totals[member].out, in_.last[member] = totals[member].in;
    return {};
  }
  out_.rate.carries = sent >= *sent_ + kCarries;  // less than at first: a member's bytes go by memory since
  in_.rate.carries = received >= *received_ + kCarries;
  std::vector<Change> changes;
  for (const bool goes_out : {true, false}) {
    Direction& direction = goes_out ? out_ : in_;
    const auto sample = direction.sample(totals, goes_out ? &net::LinkStats::out : &net::LinkStats::in);
    if (!sample) continue;
    if (const auto change = direction.took(*sample, goes_out)) changes.push_back(*change);
  }
  return changes;
}

void LinkRates::begin_again() {
  out_ = in_ = Direction(out_.last.size());
  sent_.reset();
}

std::string words(const LinkRatesOf& own) {
  std::ostringstream told;
  told.precision(std::numeric_limits<double>::max_digits10);
  for (const LinkRate& rate : {own.out, own.in}) told << rate.first << ' ' << rate.now << ' ' << rate.carries << ' ';
  return told.str();
}

std::vector<LinkRatesOf> heard_rates(std::span<const std::string> words) {
  std::vector<LinkRatesOf> rates(words.size());
  for (std::size_t member = 0; member < words.size(); ++member) {
    std::istringstream told(words[member]);
    for (LinkRate* const rate : {&rates[member].out, &rates[member].in}) told >> rate->first >> rate->now >> rate->carries;
    if (told.fail()) throw Error(Code::invalid_argument, "are not what members tell: \"" + words[member] + "\"", "the rates of links");
  }
  return rates;
}

std::optional<LinkModel> as_seen(const LinkModel& known, const LinkModel& measured, std::span<const LinkRatesOf> rates) {
  bool has_changed = false;
  double first = std::numeric_limits<double>::infinity(), now = first;  // of the slowest
  for (const LinkRatesOf& of_member : rates) {
    for (const LinkRate& rate : {of_member.out, of_member.in}) {
      if (!rate.carries) continue;
      if (rate.first <= 0 || rate.now <= 0) return {};
      has_changed = has_changed || differs(rate.now, rate.first);
      first = std::min(first, rate.first);
      now = std::min(now, rate.now);
    }
  }
  if (!has_changed) return {};
  LinkModel seen = known;
  seen.rate = std::min(known.rate * now / first, measured.rate);
  seen.fan_in = std::min(known.fan_in * now / first, measured.fan_in);
  if (!known.network) return seen;
  const auto topology = network_as_seen(known.network->topology(), measured.network->topology(), rates);
  if (!topology) return {};
  if (const auto network = known.network->measured_anew(*topology)) seen.network = network;
  return seen;
}

}  // namespace shoal::collective

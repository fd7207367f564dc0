#include "shoal/table/holders.h"

#include <algorithm>
#include <utility>

namespace shoal::table {

Holders::Holders(const std::vector<net::Rank>& ranks, Clock announced, std::uint64_t flushes)
    : last_first_(ranks.front()), told_{.announced = announced, .flushes = flushes} {
  for (const net::Rank rank : ranks) hosts_.push_back({.rank = rank, .told = told_});
}

const Holders::Host* Holders::find(net::Rank rank) const {
  const auto host = std::ranges::find(hosts_, rank, &Host::rank);
  return host == hosts_.end() ? nullptr : &*host;
}

const Holders::Host* Holders::first_host() const {
  const Host* first = nullptr;
  for (const Host& host : hosts_) {
    if (host.counts && (!first || (first->goes && !host.goes))) first = &host;
  }
  return first;
}

bool Holders::Told::reaches(const Told& other) const {
  return announced >= other.announced && counted >= other.counted && flushes >= other.flushes && assigned >= other.assigned;
}

void Holders::joins(net::Rank rank, std::uint64_t handover, bool leads, std::uint64_t written) {
  if (lacked_.erase(handover) > 0) return;
  std::erase_if(hosts_, [rank](const Host& host) { return host.rank == rank; });  // an earlier try
  Host& host = *hosts_.insert(leads ? hosts_.begin() : hosts_.end(), Host{rank, handover, false, false});
  host.told.assigned = assigned_ + assigning_.size();     // it will have them: they stand before its part of the stream
  host.seen = written;
}

void Holders::holds(net::Rank rank, std::uint64_t handover) {
  Host* const host = find(rank);
  if (!host || host->handover != handover) return;
  host->whole = true;
  host->goes = false;
  conclude();
}

void Holders::lacks(net::Rank rank, std::uint64_t handover) {
  const auto joins = [&](const Host& host) { return host.rank == rank && host.handover == handover && !host.whole; };
  if (std::erase_if(hosts_, joins) == 0) lacked_.insert(handover);
}

void Holders::goes(net::Rank rank, std::uint64_t handover) {
  Host* const host = find(rank);
  if (host && host->handover == handover) host->goes = true;
}

void Holders::parts(net::Rank rank, std::uint64_t handover) {
  std::erase_if(hosts_, [&](const Host& host) { return host.rank == rank && host.handover == handover; });
  conclude();
}

void Holders::leaves(net::Rank rank) {
  if (Host* const host = find(rank)) host->gone = true;
}

void Holders::loses(net::Rank rank) {
  if (const Host* const host = find(rank)) lost_seen_ = std::min(lost_seen_.value_or(host->seen), host->seen);
  std::erase_if(hosts_, [rank](const Host& host) { return host.rank == rank; });
  conclude();
}

void Holders::conclude() {
  std::optional<Told> least;
  for (Host& host : hosts_) {
    host.counts = host.counts || (host.whole && host.told.reaches(told_));
    if (!host.counts) continue;
    if (!least) least = host.told;
    least->announced = std::min(least->announced, host.told.announced);
    least->counted = std::min(least->counted, host.told.counted);
    least->flushes = std::min(least->flushes, host.told.flushes);
    least->assigned = std::min(least->assigned, host.told.assigned);
  }
  if (!least) return;                                    // nobody confirms what the last one did not
  told_ = *least;
  last_first_ = first_host()->rank;
}

std::optional<net::Rank> Holders::first() const {
  const Host* const host = first_host();
  return host ? std::optional(host->rank) : std::nullopt;
}

std::vector<net::Rank> Holders::all() const {
  std::vector<net::Rank> ranks;
  for (const Host& host : hosts_) ranks.push_back(host.rank);
  return ranks;
}

std::vector<net::Rank> Holders::whole() const {
  std::vector<net::Rank> ranks;
  for (const Host& host : hosts_) {
    if (host.whole) ranks.push_back(host.rank);
  }
  return ranks;
}

std::vector<net::Rank> Holders::staying() const {
  std::vector<net::Rank> ranks;
  for (const Host& host : hosts_) {
    if (host.whole && !host.goes) ranks.push_back(host.rank);
  }
  return ranks;
}

bool Holders::joining() const {
  return std::ranges::any_of(hosts_, [](const Host& host) { return !host.whole; });
}

void Holders::hear(net::Rank rank, const Header& header) {
  Host* const host = find(rank);
  if (!host) return;
  host->told.announced = std::max(host->told.announced, header.clock);
  host->told.counted = std::max(host->told.counted, header.sequence);
  host->told.flushes = std::max(host->told.flushes, header.heard);
  host->told.assigned += header.kind == Kind::assigned;
  conclude();
  if (host == first_host()) dropped_ = header.count;
}

void Holders::hear_each(net::Rank rank, std::span<const Key> clocks) {
  if (first() == rank) each_.assign(clocks.begin(), clocks.end());
}

bool Holders::gone() const {
  const Host* const host = first_host();
  return host && host->gone;
}

bool Holders::gone_before(std::uint64_t flushes) const {
  return std::ranges::any_of(hosts_, [flushes](const Host& host) { return host.counts && host.gone && host.told.flushes < flushes; });
}

void Holders::sees(net::Rank rank, std::uint64_t sequence) {
  if (Host* const host = find(rank)) host->seen = std::max(host->seen, sequence);
}

// Of those that join, too: others may read from one before this member has heard that it counts.
std::uint64_t Holders::seen() const {
  std::optional<std::uint64_t> least = lost_seen_;
  for (const Host& host : hosts_) least = std::min(least.value_or(host.seen), host.seen);
  return least.value_or(0);
}

std::uint64_t Holders::most_flushes() const {
  std::uint64_t most = told_.flushes;
  for (const Host& host : hosts_) most = host.counts ? std::max(most, host.told.flushes) : most;
  return most;
}

std::uint64_t Holders::first_flushes() const {
  const Host* const host = first_host();
  return host ? host->told.flushes : told_.flushes;
}

std::optional<std::vector<Key>> Holders::take_assigned() {
  if (assigning_.empty() || assigned_ >= told_.assigned) return std::nullopt;
  ++assigned_;
  std::vector<Key> keys = std::move(assigning_.front());
  assigning_.pop_front();
  return keys;
}

}  // namespace shoal::table

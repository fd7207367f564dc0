#include "shoal/table/released.h"

#include <algorithm>

namespace shoal::table {

void Released::joins(net::Rank reader) {
  if (!readers_[reader].left) readers_[reader] = {.joined = true, .sent = last_, .back = last_};
}

void Released::leaves(net::Rank reader) {
  readers_[reader].joined = false;
  readers_[reader].left = true;
}

bool Released::fits(std::span<const Amount> amounts, double bound) const {
  return std::ranges::all_of(amounts, [&](const Amount& amount) { return sums_.fits(amount, bound); });
}

void Released::release(net::Rank origin, std::uint64_t sequence, std::vector<Amount> amounts) {
  for (const Amount& amount : amounts) sums_.add(amount);
  half_.push_back({++last_, origin, sequence, std::move(amounts)});
}

std::uint64_t Released::stamp(net::Rank reader) {
  Reader& of = readers_[reader];
  if (!of.joined || of.sent == last_) return 0;
  return of.sent = last_;
}

bool Released::came_back(net::Rank reader, std::uint64_t stamp) {
  Reader& of = readers_[reader];
  if (stamp > of.sent) return false;
  of.back = std::max(of.back, stamp);
  return true;
}

std::vector<std::pair<net::Rank, std::uint64_t>> Released::take_seen() {
  std::uint64_t all = last_;
  for (const Reader& reader : readers_) {
    if (reader.joined) all = std::min(all, reader.back);
  }
  std::vector<std::pair<net::Rank, std::uint64_t>> seen;
  for (; !half_.empty() && half_.front().number <= all; half_.pop_front()) {
    const Update& update = half_.front();
    for (const Amount& amount : update.amounts) sums_.remove(amount);
    const auto known = std::ranges::find(seen, update.origin, &std::pair<net::Rank, std::uint64_t>::first);
    if (known == seen.end()) {
      seen.emplace_back(update.origin, update.sequence);
    } else {
      known->second = update.sequence;
    }
  }
  return seen;
}

}  // namespace shoal::table

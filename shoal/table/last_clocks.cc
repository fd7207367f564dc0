#include "shoal/table/last_clocks.h"

#include <algorithm>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::table {

LastClocks::LastClocks(const Workers& workers, net::Rank members, Here here) : workers_(workers), members_(members), here_(std::move(here)) {}

void LastClocks::lose(net::Rank member, const std::vector<std::uint64_t>& tables) {
  if (!lost_.insert(member).second) return;
  losses_ = 0;
  for (const net::Rank rank : lost_) losses_ = spread(losses_ + rank + 1);
  lost_workers_.clear();
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (lost(workers_.rank_of(worker))) lost_workers_.push_back(worker);
  }
  for (const std::uint64_t table : tables) tell(table);
}

void LastClocks::falls_silent(net::Rank member) {
  silent_.insert(member);
  std::vector<std::uint64_t> tables;
  for (const auto& [table, round] : rounds_) tables.push_back(table);
  for (const std::uint64_t table : tables) conclude(table);
}

void LastClocks::open(std::uint64_t table) {
  if (lost_.empty()) return;
  if (rounds_[table].told != losses_) return tell(table);
  Last none;                                     // it was not known here: they had completed nothing
  for (const std::uint32_t worker : lost_workers_) none.clocks[worker] = 0;
  if (rounds_[table].agreed == losses_) here_.cut(table, none);
}

void LastClocks::tell(std::uint64_t table) {
  if (lost_.empty()) return;
  rounds_[table].told = losses_;
  Message message = Message::of_rows(Kind::last_clocks, table, lost_workers_.size() + 2, 0);
  message.header.sequence = losses_;
  Key* key = message.key_places();
  for (const std::uint32_t worker : lost_workers_) *key++ = static_cast<Key>(here_.completed(table, worker));
  *key++ = static_cast<Key>(here_.reached(table));
  *key = here_.met(table);
  for (net::Rank member = 0; member < members_; ++member) {
    if (!lost(member)) here_.send(member, message);
  }
  conclude(table);
}

void LastClocks::take(net::Rank from, const Message& message) {
  const auto clocks = message.keys();
  if (message.header.length != clocks.size_bytes() || clocks.size() > workers_.size() + 2) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " tells clocks of workers that there are not", "tables",
                "run the same program on all members");
  }
  if (lost(from)) return;
  const std::uint64_t table = message.header.table;
  std::vector<Clock>& told = rounds_[table].said[message.header.sequence][from];
  told.clear();
  for (const Key clock : clocks) told.push_back(static_cast<Clock>(clock));
  if (rounds_[table].told != losses_) return tell(table);
  conclude(table);
}

void LastClocks::conclude(std::uint64_t table) {
  Round& round = rounds_[table];
  const auto found = round.said.find(losses_);
  if (round.told != losses_ || found == round.said.end()) return;
  const auto& said = found->second;
  for (net::Rank member = 0; member < members_; ++member) {
    const auto told = said.find(member);
    if (!lost(member) && !silent_.contains(member) && (told == said.end() || told->second.size() != lost_workers_.size() + 2)) return;
  }
  Last last;
  for (std::size_t i = 0; i < lost_workers_.size(); ++i) {
    Clock least = kLastClock;
    for (const auto& [member, clocks] : said) least = lost(member) ? least : std::min(least, clocks[i]);
    last.clocks[lost_workers_[i]] = least;
  }
  last.met = ~std::uint64_t{0};
  for (const auto& [member, clocks] : said) {
    if (lost(member)) continue;
    last.reached = std::max(last.reached, clocks[lost_workers_.size()]);
    last.met = std::min(last.met, static_cast<std::uint64_t>(clocks.back()));
  }
  round.agreed = losses_;
  round.said.erase(found);
  here_.cut(table, last);
}

}  // namespace shoal::table

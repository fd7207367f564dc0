// Members die while workers go on, on the scripted network: rows that they held are at hand elsewhere, nothing of those that live is lost or
// counted twice, and what a dead worker added counts up to one of its clocks, the same at all servers.
#include <cstdlib>

#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

using Counts = ScriptedWorkers<std::int64_t>;

std::uint64_t seeds() {
  const char* const text = std::getenv("SHOAL_SEEDS");
  return text ? std::strtoull(text, nullptr, 10) : 40;
}

Counts::Options losing(const Consistency& consistency, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  Counts::Options options;
  options.consistency = consistency;
  options.seed = seed;
  options.members = static_cast<net::Rank>(2 + seed % 4);
  options.workers_a_member = static_cast<std::uint32_t>(1 + seed % 3 / 2);
  options.uneven = seed % 2 == 0;
  if (seed % 5 == 0 && options.members > 2) options.servers = {0, options.members - 1};
  if (seed % 3 == 0) options.workers = {0, 1};                            // the others only serve
  options.remainder = draw() % 2 == 0;
  if (draw() % 2 == 0) options.network.rate = 1e5;                                // who dies has not sent all that it said
  const auto first = static_cast<net::Rank>(draw() % options.members);
  options.kills.emplace_back(first, std::chrono::microseconds(draw() % 60'000));
  if (options.members > 3 && options.servers.empty() && draw() % 2 == 0) {  // one that holds none of the same rows
    options.kills.emplace_back((first + 2) % options.members, std::chrono::microseconds(draw() % 60'000));
  }
  return options;
}

void expect_survival(const Consistency& consistency) {
  int cut_short = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    const Counts::Options options = losing(consistency, seed);
    Counts counts(options);
    const bool by_clock = clocked(consistency) && !leaves_at_once(consistency);
    std::vector<std::vector<bool>> fits(counts.size(), std::vector<bool>(static_cast<std::size_t>(options.clocks) + 2, true));
    counts.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const std::int64_t> row) {
      for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
        const bool over = clock == Counts::kOver;
        EXPECT_LE(row[worker], counts.added(worker, key, counts.clock(worker) + 1)) << "of worker " << worker;
        if (!counts.is_dead(worker)) {
          const Clock whole = std::min(needed_age(consistency, clock), counts.clock(worker));
          const Clock surely = worker == reader || over ? clock : whole;
          EXPECT_GE(row[worker], counts.added(worker, key, surely)) << "reader " << reader << " at clock " << clock << " of worker " << worker;
        }
        if (!over || !counts.is_dead(worker) || !by_clock) continue;
        for (std::size_t cut = 0; cut < fits[worker].size(); ++cut) {
          fits[worker][cut] = fits[worker][cut] && row[worker] == counts.added(worker, key, static_cast<Clock>(cut));
        }
      }
    });
    for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
      EXPECT_TRUE(std::ranges::count(fits[worker], true)) << "of worker " << worker << " some rows count more clocks than others";
      cut_short += counts.is_dead(worker) && counts.clock(worker) > 0;
    }
  }
  EXPECT_GT(cut_short, 0) << "nobody died at work";
}

TEST(Losses, whole_clocks_stay_whole) { expect_survival(Bsp{}); }
TEST(Losses, with_bounded_staleness) {
  expect_survival(Ssp{0});
  expect_survival(Ssp{3});
}
TEST(Losses, with_pushed_rows) {
  expect_survival(Essp{0});
  expect_survival(Essp{2});
}
TEST(Losses, with_staleness_that_changes_and_updates_that_wait) {
  expect_survival(Dssp{0, 3});
}
TEST(Losses, where_updates_are_seen_at_once) {
  expect_survival(Cap{2});
  expect_survival(Async{});
}

}  // namespace
}  // namespace shoal::table

// Rows between members of one host, over real connections: read where they lie.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "shoal/table/tables.h"
#include "tests/net/members.h"

namespace shoal::table {
namespace {

// Goal: large rows go to a server of this host and come back without a copy into a ring, as often as they are sent, and sums are exact; over TCP nothing is lent.
TEST(LentRows, between_members_of_one_host) {
  constexpr std::size_t kWideRow = 100'000, kSentRows = 3;
  constexpr int kClocks = 8;
  constexpr std::uint64_t kBytes = kClocks * kSentRows * kWideRow * sizeof(std::int64_t);
  for (const bool shared : {true, false}) {
    SCOPED_TRACE(shared);
    net::JoinOptions options = net::quick();
    options.shared_memory = shared;
    const auto jobs = net::join_all(2, options);
    net::each(2, [&](net::Rank rank) {
      Tables tables(jobs[rank]->transport(), {.servers = {0}});
      std::vector<Key> keys(kSentRows);
      std::iota(keys.begin(), keys.end(), Key{5});
      const std::vector<std::int64_t> ones(keys.size() * kWideRow, 1);
      std::vector<std::int64_t> values(ones.size());
      auto table = tables.worker().open<std::int64_t>({.name = "rows", .width = kWideRow, .consistency = Ssp{0}});
      for (int clock = 1; clock <= kClocks; ++clock) {
        if (rank == 1) table.add(keys, ones);
        table.tick();
        table.read(keys, values);
        EXPECT_EQ(values, std::vector<std::int64_t>(values.size(), clock));
        table.barrier();  // a read may have what has come of later clocks
      }
      const std::uint64_t lent = jobs[rank]->transport().link(1 - rank).lent;
      EXPECT_GE(lent, shared ? kBytes : 0);
      EXPECT_EQ(lent > 0, shared);
    });
  }
}

}  // namespace
}  // namespace shoal::table

// Which buckets are whose, and what shares of members' memory come to.
#include "shoal/table/placement.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/shares.h"
#include "shoal/table/tables.h"

namespace shoal::table {
namespace {

std::vector<net::Rank> ranks(std::size_t count) {
  std::vector<net::Rank> ranks(count);
  std::iota(ranks.begin(), ranks.end(), net::Rank{0});
  return ranks;
}

std::vector<std::size_t> buckets(const std::vector<std::uint64_t>& shares) {
  const Placement placement(ranks(shares.size()), 1, shares);
  std::vector<std::size_t> buckets;
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) buckets.push_back(placement.buckets_of(shard));
  return buckets;
}

TEST(Placement, deals_buckets_in_proportion_to_shares) {
  EXPECT_EQ(buckets({1, 3}), (std::vector<std::size_t>{1024, 3072}));
  EXPECT_EQ(buckets({8000, 4000, 4000}), (std::vector<std::size_t>{2048, 1024, 1024}));
  EXPECT_EQ(buckets({64'000, 16'000, 1'000'000}), (std::vector<std::size_t>{243, 61, 3792}));
}
TEST(Placement, leaves_nobody_without_a_bucket) {
  EXPECT_EQ(buckets({1, 1'000'000'000, 1, 1}), (std::vector<std::size_t>{1, 4093, 1, 1}));
  EXPECT_EQ(buckets(std::vector<std::uint64_t>(4096, 7)), std::vector<std::size_t>(4096, 1));
}
TEST(Placement, is_even_without_shares_and_with_equal_ones) {
  for (std::size_t servers = 1; servers < 70; ++servers) {
    const Placement without(ranks(servers), 1), with(ranks(servers), 1, std::vector<std::uint64_t>(servers, 12'345));
    for (Key key = 0; key < 5000; ++key) {
      ASSERT_EQ(without.shard_of(key), std::uint64_t{bucket_of(key)} * servers / kBuckets);
      ASSERT_EQ(with.shard_of(key), without.shard_of(key));
    }
  }
}
TEST(Placement, asks_for_the_shares_of_servers_alone) {
  const Placement placement({0, 2}, 1, {1, 100, 1});
  EXPECT_EQ(placement.buckets_of(0), 2048u);
  EXPECT_EQ(placement.buckets_of(1), 2048u);
}
TEST(Placement, cuts_each_server_s_share_into_parts_that_it_holds_first_and_the_next_one_too) {
  const Placement placement(ranks(3), 2, {1, 1, 2}, 4);
  ASSERT_EQ(placement.shards(), 12u);
  for (std::size_t shard = 0; shard < 12; ++shard) {
    const net::Rank server = static_cast<net::Rank>(shard / 4);
    EXPECT_EQ(placement.buckets_of(shard), server == 2 ? 512u : 256u);
    EXPECT_EQ(placement.first_holders(shard), (std::vector<net::Rank>{server, (server + 1) % 3}));
  }
}
TEST(Placement, of_more_parts_than_buckets_is_refused) {
  net::InprocJob job(3, {.seed = 4});
  for (const std::uint32_t parts : {0u, kBuckets / 3 + 1}) EXPECT_THROW(Tables(job.member(0), TablesOptions{.parts = parts}), Error);
}

TEST(Shares, divide_a_machine_by_its_members) {
  const std::vector<Memory> members{{64'000, 1}, {16'000, 2}, {64'000, 1}, {8'000, 0}, {8'000, 0}, {0, 3}};
  EXPECT_EQ(shares_of(members), (std::vector<std::uint64_t>{32'000, 16'000, 32'000, 8'000, 8'000, 1}));
}

// Rows are where the placement says, and sums exact.
TEST(Shares, lead_rows_to_their_servers) {
  net::InprocJob job(3, {.seed = 4});
  const std::vector<std::uint64_t> shares{1, 2, 5};
  const Placement placement(ranks(3), 1, shares);
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<std::int64_t>> workers;
  for (net::Rank rank = 0; rank < 3; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.shares = shares}));
  for (auto& member : tables) workers.push_back(member->worker().open<std::int64_t>({.name = "counts", .consistency = Bsp{}}));
  std::vector<Key> keys(4000);
  std::iota(keys.begin(), keys.end(), Key{0});
  for (auto& worker : workers) {
    worker.add(keys, std::vector<std::int64_t>(keys.size(), 1));
    worker.arrive();
  }
  const auto met = [&] { return std::ranges::all_of(workers, [](auto& worker) { return worker.copy().flushed(0); }); };
  ASSERT_TRUE(job.run(met));
  std::vector<std::int64_t> rows(keys.size());
  workers[0].read(keys, rows);
  EXPECT_EQ(rows, std::vector<std::int64_t>(keys.size(), 3));
  std::vector<std::size_t> owned(3);
  for (const Key key : keys) ++owned[placement.shard_of(key)];
  std::vector<std::uint64_t> sent;
  for (net::Rank server = 1; server < 3; ++server) sent.push_back(job.bytes_sent(0, server));
  EXPECT_GT(sent[0], owned[1] * 2 * sizeof(Key));
  EXPECT_GT(sent[1], owned[2] * 2 * sizeof(Key));
  EXPECT_LT(sent[0], 2 * sent[1] * owned[1] / owned[2]);
  tables.clear();
}

}  // namespace
}  // namespace shoal::table

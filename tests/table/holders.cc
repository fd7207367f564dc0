// Who holds a shard, and which of a member's parts are everybody's where values are bounded.
#include "shoal/table/holders.h"

#include <gtest/gtest.h>

namespace shoal::table {
namespace {

TEST(Holders, a_part_is_seen_when_who_reads_from_any_of_them_has_it) {
  Holders holders({0, 1});
  holders.sees(0, 5);
  EXPECT_EQ(holders.seen(), 0u);
  holders.sees(1, 3);
  EXPECT_EQ(holders.seen(), 3u);
  holders.sees(1, 2);  // what was told once stays
  EXPECT_EQ(holders.seen(), 3u);
  holders.sees(7, 1);  // holds nothing
  EXPECT_EQ(holders.seen(), 3u);
  holders.leaves(1);   // it asks for nothing more, and serves on
  EXPECT_EQ(holders.seen(), 3u);
}

TEST(Holders, who_joins_owes_what_was_written_since) {
  Holders holders({0, 1});
  holders.sees(0, 9), holders.sees(1, 9);
  holders.joins(2, 1, false, 12);
  EXPECT_EQ(holders.seen(), 9u);
  holders.sees(0, 20), holders.sees(1, 20);
  EXPECT_EQ(holders.seen(), 12u) << "others may read from it before this member has heard that they may";
  holders.lacks(2, 1);
  EXPECT_EQ(holders.seen(), 20u);
}

TEST(Holders, from_who_is_lost_some_read_until_all_know) {
  Holders holders({0, 1});
  holders.sees(0, 4), holders.sees(1, 8);
  holders.loses(0);
  EXPECT_EQ(holders.seen(), 4u);
  holders.loses(1);
  holders.all_know();
  EXPECT_TRUE(holders.lost());
  Holders parted({0, 1});
  parted.sees(0, 4), parted.sees(1, 8);
  parted.parts(0, 0);  // when all had another first
  EXPECT_EQ(parted.seen(), 8u);
}

}  // namespace
}  // namespace shoal::table

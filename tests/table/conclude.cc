// What all conclude from what each has kept: where tables go on, who holds which shard, and which tables may be there at all.
#include "shoal/table/kept.h"

#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "shoal/table/tables.h"
#include "tests/refusal.h"

namespace shoal::table {
namespace {

const Placement kPlacement({0, 1, 2}, 2);
Kept kept(std::size_t shard, Point stands, Point first = {}) { return {7, shard, stands, first, Ssp{3}}; }

TEST(Conclude, a_table_goes_on_where_all_holders_have_been) {
  const auto starts = conclude({{kept(0, {1, 9}, {1, 4}), kept(2, {1, 8}, {1, 5})}, {kept(1, {1, 6}, {1, 3})}, {kept(2, {1, 5}, {1, 2})}}, kPlacement);
  EXPECT_EQ(starts.at(7).at, (Point{1, 5}));
  EXPECT_EQ(starts.at(7).holders, (std::vector<std::vector<net::Rank>>{{0}, {1}, {2, 0}}));
}
TEST(Conclude, or_where_some_holder_of_each_shard_is_if_others_cannot_go_back_so_far) {
  // Shard 1 has lost the holder that was further; of shard 2 rank 2 came to hold it while workers went on, and is behind.
  const auto starts = conclude({{kept(0, {1, 9}, {1, 4}), kept(2, {1, 8}, {1, 4})}, {kept(1, {1, 6}, {1, 3})}, {kept(2, {0, 5})}}, kPlacement);
  EXPECT_EQ(starts.at(7).at, (Point{1, 6}));
  EXPECT_EQ(starts.at(7).holders, (std::vector<std::vector<net::Rank>>{{0}, {1}, {0}}));
}
TEST(Conclude, who_cannot_go_back_holds_nothing) {
  const auto starts = conclude({{kept(0, {0, 9}, {0, 7})}, {kept(0, {0, 6}), kept(1, {0, 6})}, {kept(2, {0, 6})}}, kPlacement);
  EXPECT_EQ(starts.at(7).at, (Point{0, 6}));
  EXPECT_EQ(starts.at(7).holders.front(), std::vector<net::Rank>{1});
}
TEST(Conclude, rows_that_nobody_has_end_the_run) {
  EXPECT_EQ(refusal([] { conclude({{kept(0, {0, 2})}, {kept(1, {0, 1})}, {}}, kPlacement); }, Code::io),
            "tables: all members that held some rows were lost before others had them: rows of all tables are lost (begin again from a snapshot)");
}
TEST(Conclude, a_table_that_nobody_had_begun_is_opened_anew) {
  EXPECT_TRUE(conclude({{kept(0, {})}, {kept(1, {})}, {}}, kPlacement).empty());
}

TEST(Conclude, tables_that_cannot_go_back_are_refused) {
  const auto line = [](const Spec& spec) { return refusal([&] { check_goes_back(spec); }, Code::unsupported); };
  const std::string cannot = " cannot go back to whole clocks when others come in place of lost members ";
  EXPECT_EQ(line({.name = "t", .consistency = Async{}}), "table t: async" + cannot + "(bsp, ssp, essp and dssp can; or run with --on-peer-lost shrink)");
  EXPECT_EQ(line({.name = "t", .consistency = Cap{1}}), "table t: cap:1" + cannot + "(bsp, ssp, essp and dssp can; or run with --on-peer-lost shrink)");
  EXPECT_EQ(line({.name = "t", .consistency = Significance{0.5, 2}}),
            "table t: significance:0.5:2" + cannot + "(bsp, ssp, essp and dssp can; or run with --on-peer-lost shrink)");
  EXPECT_EQ(line({.name = "t", .consistency = Essp{3}, .rule = Rule::sgd(0.5)}),
            "table t: steps of sgd:0.5:0 under essp:3" + cannot + "(under bsp they can; or run with --on-peer-lost shrink)");
  EXPECT_EQ(line({.name = "t", .encoding = Encoding::bf16}), "table t: what travels as bf16" + cannot + "(encoding none can; or run with --on-peer-lost shrink)");
  EXPECT_EQ(line({.name = "t", .consistency = Bsp{}, .rule = Rule::sgd(0.5)}), "nothing was refused");
}

}  // namespace
}  // namespace shoal::table

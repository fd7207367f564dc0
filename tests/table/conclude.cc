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

std::vector<Told> told(std::vector<std::vector<Kept>> by_rank) {
  std::vector<Told> all;
  for (auto& kept_there : by_rank) all.push_back({true, kPlacement, std::move(kept_there)});
  return all;
}

TEST(Conclude, a_table_goes_on_where_all_holders_have_been) {
  const auto starts = conclude(told({{kept(0, {1, 9}, {1, 4}), kept(2, {1, 8}, {1, 5})}, {kept(1, {1, 6}, {1, 3})}, {kept(2, {1, 5}, {1, 2})}}), kPlacement);
  EXPECT_EQ(starts.at(7).at, (Point{1, 5}));
  EXPECT_EQ(starts.at(7).holders, (std::vector<std::vector<net::Rank>>{{0}, {1}, {2, 0}}));
}
TEST(Conclude, or_where_some_holder_of_each_shard_is_if_others_cannot_go_back_so_far) {
  // Shard 1 has lost the holder that was further; of shard 2 rank 2 came to hold it while workers went on, and is behind.
  const auto starts = conclude(told({{kept(0, {1, 9}, {1, 4}), kept(2, {1, 8}, {1, 4})}, {kept(1, {1, 6}, {1, 3})}, {kept(2, {0, 5})}}), kPlacement);
  EXPECT_EQ(starts.at(7).at, (Point{1, 6}));
  EXPECT_EQ(starts.at(7).holders, (std::vector<std::vector<net::Rank>>{{0}, {1}, {0}}));
}
TEST(Conclude, who_cannot_go_back_holds_nothing) {
  const auto starts = conclude(told({{kept(0, {0, 9}, {0, 7})}, {kept(0, {0, 6}), kept(1, {0, 6})}, {kept(2, {0, 6})}}), kPlacement);
  EXPECT_EQ(starts.at(7).at, (Point{0, 6}));
  EXPECT_EQ(starts.at(7).holders.front(), std::vector<net::Rank>{1});
}
TEST(Conclude, a_shard_that_was_about_to_move_is_dropped_by_who_holds_most) {
  const auto starts = conclude(told({{kept(0, {0, 6}), kept(2, {0, 6})}, {kept(0, {0, 6}), kept(1, {0, 6})}, {kept(0, {0, 6}), kept(1, {0, 6}), kept(2, {0, 6})}}), kPlacement);
  EXPECT_EQ(starts.at(7).holders, (std::vector<std::vector<net::Rank>>{{0, 1}, {1, 2}, {2, 0}}));
}
TEST(Conclude, rows_that_nobody_has_end_the_run) {
  EXPECT_EQ(refusal([] { conclude(told({{kept(0, {0, 2})}, {kept(1, {0, 1})}, {}}), kPlacement); }, Code::io),
            "tables: all members that held some rows were lost before others had them: rows of all tables are lost (begin again from a snapshot)");
}
TEST(Conclude, a_table_that_nobody_had_begun_is_opened_anew) {
  EXPECT_TRUE(conclude(told({{kept(0, {})}, {kept(1, {})}, {}}), kPlacement).empty());
}

// How rows are dealt out is what those say who were there; who comes takes it over, and may hold shards besides.
TEST(Conclude, rows_stay_in_the_shards_in_which_they_are) {
  const Placement before({0, 2}, 2, {5, 1, 3}, 2), of_who_comes({0, 1, 2, 3}, 2);
  const std::vector<Told> all{{false, of_who_comes, {}}, {true, before, {kept(3, {0, 2})}}, {true, before, {}}, {false, of_who_comes, {}}};
  std::vector<Told> heard;
  for (net::Rank rank = 0; rank < 4; ++rank) heard.push_back(told_from(message_of(all[rank]), rank, 4));
  const Placement next = agree(heard).joined_by({0, 1, 2, 3});
  EXPECT_TRUE(next.deals_as(before));
  EXPECT_EQ(next.shards(), 4u);
  EXPECT_EQ(next.servers(), (std::vector<net::Rank>{0, 2, 1, 3}));
  EXPECT_EQ(next.first_holders(3), (std::vector<net::Rank>{2, 0}));
  for (Key key = 0; key < 1000; ++key) ASSERT_EQ(next.shard_of(key), before.shard_of(key));
  EXPECT_EQ(heard[1].kept.front().shard, 3u);
}
TEST(Conclude, members_that_deal_out_rows_in_different_ways_are_refused) {
  const Placement one({0, 1, 2}, 2), another({0, 1, 2}, 2, {1, 1, 2});
  EXPECT_EQ(refusal([&] { agree({{false, one, {}}, {false, one, {}}, {false, another, {}}}); }, Code::mismatch),
            "tables: rank 2 deals out rows otherwise than rank 0 (run the same program with the same settings on all members)");
  EXPECT_EQ(refusal([&] { agree({{false, another, {}}, {true, one, {}}, {true, another, {}}}); }, Code::mismatch),
            "tables: rank 2 deals out rows otherwise than rank 1 (run the same program with the same settings on all members)");
}
TEST(Conclude, who_joined_is_given_shards_of_those_that_hold_most) {
  const auto moves = [](std::vector<std::vector<net::Rank>> holders, const std::vector<net::Rank>& joined) {
    const Placement placement = Placement({0, 1}, 2, {}, holders.size() / 2).joined_by(joined);
    std::vector<std::pair<std::size_t, net::Rank>> moves;
    for (const Moving& one : spread_over_joined(7, std::move(holders), placement)) moves.emplace_back(one.shard, one.to);
    return moves;
  };
  using Moves = std::vector<std::pair<std::size_t, net::Rank>>;
  EXPECT_EQ(moves({{0, 1}, {1, 0}}, {}), Moves{});
  EXPECT_EQ(moves({{0, 1}, {1, 0}}, {2}), (Moves{{0, 2}}));
  EXPECT_EQ(moves({{0, 1}, {0, 1}, {1, 0}, {1, 0}}, {2, 3}), (Moves{{0, 2}, {2, 3}, {1, 2}, {3, 3}}));
  EXPECT_EQ(moves({{1}, {1}}, {2}), Moves{}) << "they get another holder anyway";
  EXPECT_EQ(moves({{2, 1}, {1, 2}}, {2}), Moves{}) << "who joined before holds them";
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

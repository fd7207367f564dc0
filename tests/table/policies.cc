// What one policy does and others do not, on the scripted network.
#include "shoal/table/consistency.h"

#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

// Members with a worker each; one row, which all have read.
struct OneRow {
  explicit OneRow(const Consistency& consistency, net::Rank members = 2) : job(members) {
    for (net::Rank rank = 0; rank < members; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank)));
    for (net::Rank rank = 0; rank < members; ++rank) {
      rows.push_back(tables[rank]->worker().open<std::int64_t>({.name = "rows", .consistency = consistency}));
      read(rank);
    }
  }
  ~OneRow() { tables.clear(); }
  std::int64_t read(net::Rank rank) {
    std::int64_t value = 0;
    rows[rank].read(key, std::span(&value, 1));
    return value;
  }
  void add(net::Rank rank, std::int64_t value) { rows[rank].add(key, std::span(&value, 1)); }

  net::InprocJob job;
  const std::vector<Key> key{1};
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<std::int64_t>> rows;
};

// Goal: what is added in a clock that is not complete is seen by others under cap, and not under essp.
TEST(Cap, part_of_a_clock_is_seen_before_its_tick) {
  for (const auto& [consistency, seen] : {std::pair(Consistency(Cap{2}), 12), std::pair(Consistency(Essp{2}), 0)}) {
    OneRow two(consistency);
    two.add(0, 5);
    two.add(0, 7);
    EXPECT_EQ(two.read(0), 12);
    two.job.run();
    EXPECT_EQ(two.read(1), seen) << name(consistency);
    EXPECT_EQ(two.read(0), 12);
    EXPECT_EQ(two.rows[0].clock(), 0);
  }
}

// Goal: eight workers add 1 to one row at the same time. The strong policy never lets two copies differ by more than 3; under the weak one,
// which promises 8, more is seen. Looked at after each event.
TEST(Vap, the_strong_one_keeps_copies_near_whatever_the_number_of_workers) {
  constexpr net::Rank kMembers = 8;
  for (const bool strong : {true, false}) {
    OneRow many(Vap{1, strong}, kMembers);
    std::int64_t furthest = 0;
    for (int round = 1; round <= 3; ++round) {
      for (net::Rank rank = 0; rank < kMembers; ++rank) many.add(rank, 1);
      many.job.run([&] {
        std::vector<std::int64_t> copies;
        for (net::Rank rank = 0; rank < kMembers; ++rank) copies.push_back(many.read(rank));
        furthest = std::max(furthest, std::ranges::max(copies) - std::ranges::min(copies));
        return false;
      });
      for (net::Rank rank = 0; rank < kMembers; ++rank) EXPECT_EQ(many.read(rank), round * kMembers);
    }
    EXPECT_EQ(furthest <= 3, strong) << furthest;
    EXPECT_LE(furthest, kMembers);
  }
}

// Goal: v of the t-th clock is bound / sqrt(t), and an increment waits only for what its row has unseen.
TEST(Vap, an_increment_waits_while_its_row_has_too_much_unseen) {
  EXPECT_EQ(value_bound(Vap{6}, 0), 6);
  EXPECT_EQ(value_bound(Cvap{2, 6}, 8), 2);
  EXPECT_EQ(value_bound(Cap{2}, 8), std::nullopt);
  Unseen unseen(2);
  const std::vector<Amount> twice{{7, 1}, {7, 1.5}}, huge{{8, 100}};
  EXPECT_TRUE(unseen.fits(twice, 2));  // alone
  unseen.add(0, twice[0]);
  EXPECT_TRUE(unseen.fits(std::span(twice).first(1), 2));
  EXPECT_FALSE(unseen.fits(twice, 2));
  EXPECT_TRUE(unseen.fits(huge, 2));
  unseen.leaves(0, 4);
  unseen.add(0, twice[1]);
  unseen.leaves(0, 9);
  unseen.seen(1, 9);                   // of the other server
  unseen.seen(0, 8);
  EXPECT_FALSE(unseen.fits(std::span(twice).first(1), 2));
  unseen.seen(0, 9);
  EXPECT_TRUE(unseen.fits(twice, 2));
}

// Goal: a change of 1 % of the row stays with its worker, who sees it, until what has gathered is more than 5 %, until two clocks have
// gone by, or until a barrier.
TEST(Significance, what_is_small_stays_until_it_is_not) {
  OneRow two(Significance{0.05, 2});
  const auto others = [&] {
    two.job.run();
    return two.read(1);
  };
  const auto tick = [&] {
    for (auto& row : two.rows) row.tick();
  };
  two.add(0, 100);                     // to a row of zeros: significant
  tick();
  EXPECT_EQ(others(), 100);
  two.add(0, 1);
  tick();
  EXPECT_EQ(others(), 100);
  EXPECT_EQ(two.read(0), 101);
  two.add(0, 9);                       // 10 % of it
  tick();
  EXPECT_EQ(others(), 110);
  two.add(0, 1);
  tick();
  tick();
  EXPECT_EQ(others(), 110);
  tick();
  EXPECT_EQ(others(), 111);
  two.add(0, 1);
  tick();
  EXPECT_EQ(others(), 111);
  for (auto& row : two.rows) row.arrive();
  EXPECT_EQ(others(), 112);
}

}  // namespace
}  // namespace shoal::table

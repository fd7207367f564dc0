// What travels to a reader whose working set moves, and what it keeps: exactly.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"

namespace shoal::table {
namespace {

constexpr std::size_t kWideRow = 8, kReadRows = 4;        // elements a row; rows that are read in a clock
constexpr Clock kWalked = 20;
constexpr Key kWalkedRows = kReadRows * (kWalked + 1);

// Rank 0 serves, and adds 1 to all rows in each clock; rank 1 reads other rows in each: those of clock c from kReadRows * c on.
struct Walk {
  explicit Walk(const Consistency& consistency, std::size_t most_copies = std::size_t{1} << 30) : job(2) {
    for (net::Rank rank = 0; rank < 2; ++rank) {
      tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.servers = {0}, .most_copies = most_copies}));
    }
    for (auto& of : tables) members.push_back(of->worker().open<std::int64_t>({.name = "w", .width = kWideRow, .consistency = consistency}));
    std::iota(all.begin(), all.end(), Key{0});
    job.run();
    before = members[1].telemetry();
  }
  ~Walk() {
    members.clear();
    tables.clear();
  }
  static std::vector<Key> of(Clock clock) {
    std::vector<Key> keys(kReadRows);
    std::iota(keys.begin(), keys.end(), kReadRows * static_cast<Key>(clock));
    return keys;
  }
  std::int64_t read(std::span<const Key> keys) {    // what all of them have
    std::vector<std::int64_t> values(keys.size() * kWideRow);
    members[1].read(keys, values);
    for (const std::int64_t value : values) EXPECT_EQ(value, values.front());
    return values.front();
  }
  void end_clock() {
    members[0].add(all, std::vector<std::int64_t>(all.size() * kWideRow, 1));
    for (auto& member : members) member.copy().tick(0);
    job.run();
  }
  // Rows that came, and messages of them; and keys and messages that were said about them.
  void expect(std::uint64_t rows, std::uint64_t messages, std::uint64_t keys, std::uint64_t questions) {
    const Telemetry met = members[1].telemetry();
    EXPECT_EQ(met.bytes.rows - before.bytes.rows, messages * sizeof(Header) + rows * (sizeof(Key) + kWideRow * sizeof(std::int64_t)));
    EXPECT_EQ(met.bytes.asked - before.bytes.asked, questions * sizeof(Header) + keys * sizeof(Key));
  }

  net::InprocJob job;
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<std::int64_t>> members;
  std::vector<Key> all = std::vector<Key>(kWalkedRows);
  Telemetry before;
};

// Goal: a row that was read once is pushed eight times, and not once more.
TEST(WorkingSet, a_row_that_comes_in_vain_is_unsubscribed) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Essp{0}), Consistency(Essp{3})}) {
    SCOPED_TRACE(name(consistency));
    Walk walk(consistency);
    std::uint64_t rows = 0, left = 0;
    for (Clock clock = 0; clock < kWalked; ++clock) {
      EXPECT_EQ(walk.read(Walk::of(clock)), clock);
      walk.end_clock();
      rows += kReadRows + kReadRows * static_cast<std::uint64_t>(std::min<Clock>(clock + 1, 8));
      left += clock >= 7;
    }
    walk.expect(rows, 2 * kWalked, (kWalked + left) * kReadRows, kWalked + left);
    EXPECT_EQ(walk.members[1].telemetry().unsubscribed, kReadRows * left);
    EXPECT_EQ(walk.members[1].copy().copies(), kReadRows * 7);
  }
}

// Goal: what is intended for the next clock comes when it is asked for and when that clock begins, and never again.
TEST(WorkingSet, rows_are_pushed_for_as_many_clocks_as_they_are_intended_for) {
  Walk walk(Essp{0});
  walk.members[1].intend(Walk::of(0), 0);
  for (Clock clock = 0; clock < kWalked; ++clock) {
    walk.members[1].intend(Walk::of(clock + 1), 1);
    walk.job.run();
    EXPECT_EQ(walk.read(Walk::of(clock)), clock);
    EXPECT_EQ(walk.members[1].copy().copies(), 2 * kReadRows);
    walk.end_clock();
  }
  walk.expect((2 * kWalked + 1) * kReadRows, 2 * kWalked + 1, (2 * kWalked + 1) * kReadRows, 2 * kWalked + 1);
}

// Goal: a row that is read in each clock stays, and so does one that nobody changes.
TEST(WorkingSet, what_is_read_or_does_not_change_stays) {
  Walk walk(Essp{0});
  const std::vector<Key> rests{kWalkedRows};
  walk.read(rests);
  for (Clock clock = 0; clock < kWalked; ++clock) {
    EXPECT_EQ(walk.read(Walk::of(0)), clock);
    walk.end_clock();
  }
  walk.read(rests);
  walk.expect(1 + (kWalked + 1) * kReadRows, kWalked + 2, 1 + kReadRows, 2);
}

// Goal: who walks over many rows keeps as many copies as have room, or where they are too old to be read afterwards few; its own increments, which it
// reads again at once and in the end, are all there.
TEST(WorkingSet, a_walk_over_many_rows_keeps_few) {
  constexpr std::size_t kRoom = 200'000;
  for (const auto& [consistency, most] : {std::pair(Consistency(Essp{0}), kRoom), std::pair(Consistency(Async{}), kRoom), std::pair(Consistency(Ssp{0}), std::size_t{1} << 30)}) {
    SCOPED_TRACE(name(consistency));
    Walk walk(consistency, most);
    Table<std::int64_t>& reader = walk.members[1];
    std::vector<Key> keys(100);
    const std::vector<std::int64_t> ones(keys.size() * kWideRow, 1);
    for (int pass = 0; pass < 2; ++pass) {
      for (Key first = 1'000'000; first < 1'010'000; first += keys.size()) {
        std::iota(keys.begin(), keys.end(), first);
        EXPECT_EQ(walk.read(keys), pass);
        reader.add(keys, ones);
        EXPECT_EQ(walk.read(keys), pass + 1);
        for (auto& member : walk.members) member.copy().tick(0);  // what was added is under way
        EXPECT_LE(reader.copy().copies() * (sizeof(Key) + kWideRow * sizeof(std::int64_t)), kRoom);
        const std::vector<Key> last(keys.end() - 3, keys.end());
        EXPECT_EQ(walk.read(last), pass + 1);
      }
    }
  }
}

// Goal: where nothing is pushed, who reads the same rows in each clock keeps their copies, old as they are, to put the new rows there; once it has read others
// in their place, they go.
TEST(WorkingSet, copies_that_are_too_old_stay_while_their_rows_are_read) {
  Walk walk(Ssp{0});
  const auto many_from = [](Key first) {
    std::vector<Key> keys(2000);
    std::iota(keys.begin(), keys.end(), first);
    return keys;
  };
  for (const Key first : {1'000'000, 2'000'000, 3'000'000}) {
    for (int clock = 0; clock < 4; ++clock) {
      walk.read(many_from(first));
      walk.end_clock();
      EXPECT_EQ(walk.members[1].copy().copies(), 2000);
    }
  }
}

// Goal: what is only intended, for however long, gives way where there is no room; and the longest that can be said is no short time.
TEST(WorkingSet, what_is_only_intended_has_a_bound_too) {
  constexpr std::size_t kRoom = 200'000;
  Walk walk(Essp{0}, kRoom);
  const Clock longest = std::numeric_limits<Clock>::max();
  std::vector<Key> keys(100);
  for (Key first = 1'000'000; first < 1'010'000; first += keys.size()) {
    std::iota(keys.begin(), keys.end(), first);
    walk.members[1].intend(keys, first % 200 == 0 ? longest : 1'000'000);
    walk.job.run();
    walk.end_clock();
    EXPECT_LE(walk.members[1].copy().copies() * (sizeof(Key) + kWideRow * sizeof(std::int64_t)), kRoom);
  }
  EXPECT_GE(walk.members[1].copy().copies(), keys.size());
}

TEST(WorkingSet, rows_are_not_intended_for_less_than_no_clocks) {
  Walk walk(Essp{0});
  try {
    walk.members[1].intend(Walk::of(0), -1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fact(), "rows that are intended for -1 clocks");
  }
}

}  // namespace
}  // namespace shoal::table

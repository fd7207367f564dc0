// Of rows of which some columns change, no more is sent than these, and what is read is the same.
#include "shoal/table/changes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/copies.h"
#include "shoal/table/tables.h"

namespace shoal::table {
namespace {

// Goal: each column is in one block, all of them in those that a row has; a set has as many columns as are gone through.
TEST(Columns, blocks_are_all_columns_once) {
  for (const std::size_t width : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 1000u, 4097u}) {
    SCOPED_TRACE(width);
    const Columns columns(width);
    Blocks all = 0;
    std::vector<std::size_t> seen;
    for (unsigned block = 0; block < 64 && columns.has(Blocks{1} << block); ++block) {
      const Blocks one = Blocks{1} << block;
      std::size_t count = 0;
      columns.for_each(one, [&](std::size_t first, std::size_t some) {
        for (count = some; some > 0; --some) seen.push_back(first++);
      });
      EXPECT_EQ(columns.count(one), count);
      all |= one;
    }
    std::vector<std::size_t> each(width);
    std::iota(each.begin(), each.end(), std::size_t{0});
    EXPECT_EQ(seen, each);
    EXPECT_EQ(columns.count(all), width);
    EXPECT_EQ(columns.count(0), 0u);
    EXPECT_EQ(columns.has(kWhole), width >= 64 && all == kWhole);
  }
}

// Goal: of what is added each column that it changes is named, whatever the row has; nothing by zeros, and all by a row that is nearly full.
TEST(Columns, what_an_increment_changes_is_named) {
  for (const std::size_t width : {4u, 64u, 100u, 1000u}) {
    const Columns columns(width);
    const std::vector<double> row(width, 1);
    EXPECT_EQ(columns.changed_by<double>(std::vector<double>(width), row), 0u);
    EXPECT_EQ(columns.changed_by<double>(std::vector<double>(width, 2), row), kWhole);
    for (std::size_t column = 0; column < width; ++column) {
      std::vector<double> one(width);
      one[column] = 1e-300;
      const Blocks blocks = columns.changed_by<double>(one, row);
      bool named = false;
      columns.for_each(blocks, [&](std::size_t first, std::size_t some) { named = named || (first <= column && column < first + some); });
      EXPECT_TRUE(named) << column << " of " << width;
      EXPECT_EQ(std::popcount(blocks), 1);
      std::vector<double> negative_zero = row;
      negative_zero[column] = -0.0;
      EXPECT_EQ(columns.changed_by<double>(std::vector<double>(width), negative_zero), blocks) << "-0 + 0 is 0";
    }
  }
}

TEST(Changes, what_cannot_be_a_body_is_named) {
  const Columns columns(100);                       // blocks of two
  Message message = Message::of_changes(1, 2, 2 * 16 + 3 * sizeof(float));
  auto* const blocks = reinterpret_cast<Blocks*>(message.key_places()) + 2;
  blocks[0] = 1;
  blocks[1] = 2;
  EXPECT_EQ(fault_of(message.header, false), "");
  EXPECT_EQ(fault_of(message, columns, sizeof(float)), "44 bytes for changes of 2 rows, which are 48");
  blocks[1] = 0;
  EXPECT_EQ(fault_of(message, columns, sizeof(float)), "44 bytes for changes of 2 rows, which are 40");
  EXPECT_EQ(fault_of(message, Columns(64), sizeof(std::int64_t)), "44 bytes for changes of 2 rows, which are 40");
  blocks[1] = Blocks{1} << 50;
  EXPECT_EQ(fault_of(message, columns, sizeof(float)), "changes of columns that no row has");
  blocks[1] = kWhole;
  EXPECT_EQ(fault_of(message, columns, sizeof(float)), "changes of columns that no row has");
  EXPECT_EQ(fault_of(message, Columns(64), sizeof(float)), "44 bytes for changes of 2 rows, which are 292");
}

constexpr std::size_t kColumns = 64;
constexpr Key kFew = 100;

// Two members, of which rank 0 serves; both read all rows.
template <class T>
struct Pair {
  explicit Pair(const Consistency& consistency, std::size_t width = kColumns) : job(2), width(width), keys(kFew) {
    std::iota(keys.begin(), keys.end(), Key{0});
    for (net::Rank rank = 0; rank < 2; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.servers = {0}}));
    for (auto& of : tables) members.push_back(of->worker().open<T>({.name = "w", .width = width, .consistency = consistency}));
    for (net::Rank rank = 0; rank < 2; ++rank) read(rank);
  }
  ~Pair() {
    members.clear();
    tables.clear();
  }
  std::vector<T> read(net::Rank rank) {
    std::vector<T> rows(kFew * width);
    members[rank].read(keys, rows);
    return rows;
  }
  // Each adds that to all rows, in a clock; returns how many bytes of rows rank 1 has heard of it.
  std::uint64_t clock(const std::vector<T>& by_0, const std::vector<T>& by_1) {
    const std::uint64_t before = members[1].telemetry().bytes.rows;
    for (net::Rank rank = 0; rank < 2; ++rank) {
      std::vector<T> values;
      for (Key key = 0; key < kFew; ++key) values.insert(values.end(), (rank == 0 ? by_0 : by_1).begin(), (rank == 0 ? by_0 : by_1).end());
      members[rank].add(keys, values);
    }
    for (auto& member : members) member.copy().tick(0);
    job.run();
    return members[1].telemetry().bytes.rows - before;
  }
  std::vector<T> in(std::size_t column, T value) const {
    std::vector<T> row(width);
    row[column] = value;
    return row;
  }

  net::InprocJob job;
  const std::size_t width;
  std::vector<Key> keys;
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<T>> members;
};

// Goal: where each member adds to one column of 64, the other hears a key, a word and a value for each row, not 64 values; where rows are dense or narrow,
// whole rows; where nothing changes, nothing. What is read is right.
TEST(Changes, no_more_is_sent_than_has_changed) {
  constexpr std::uint64_t whole = sizeof(Header) + kFew * (8 + kColumns * 8), one = sizeof(Header) + kFew * (8 + 8 + 8);
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Essp{2})}) {
    SCOPED_TRACE(name(consistency));
    Pair<std::int64_t> pair(consistency);
    EXPECT_EQ(pair.clock(pair.in(3, 1), pair.in(60, 5)), one);
    EXPECT_EQ(pair.clock(pair.in(3, 1), pair.in(60, 5)), one);
    EXPECT_EQ(pair.clock(pair.in(3, 1), pair.in(3, 5)), one) << "the sum of both";
    EXPECT_EQ(pair.clock(std::vector<std::int64_t>(kColumns, 1), pair.in(60, 5)), whole);
    EXPECT_EQ(pair.clock(pair.in(3, 0), pair.in(60, 5)), 0u);
    EXPECT_LT(20 * one, whole);
    for (const net::Rank rank : {0u, 1u}) {
      const std::vector<std::int64_t> rows = pair.read(rank);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t column = i % kColumns;
        ASSERT_EQ(rows[i], column == 3 ? 9 : column == 60 ? 21 : 1) << "column " << column;
      }
    }
    Pair<std::int64_t> narrow(consistency, 2);
    EXPECT_EQ(narrow.clock(narrow.in(0, 1), narrow.in(1, 1)), sizeof(Header) + kFew * (8 + 2 * 8));
  }
}

// Goal: what is read has the server's bits, also where a zero is what changes.
TEST(Changes, zeros_have_the_servers_sign) {
  Pair<float> pair(Bsp{});
  pair.members[0].assign(pair.keys, std::vector<float>(kFew * kColumns, -0.0F));
  pair.job.run();
  pair.clock(pair.in(3, -0.0F), pair.in(60, -0.0F));
  for (const net::Rank rank : {0u, 1u}) {
    for (const float value : pair.read(rank)) ASSERT_FALSE(std::signbit(value)) << "rank " << rank;
  }
}

// Goal: who goes on bulk-synchronously has the server's bits, also of columns that it was sent while increments were added as they came.
TEST(Changes, what_was_pushed_as_it_came_is_not_kept_where_all_are_to_see_the_same_bits) {
  Pair<float> pair(Essp{3});
  const auto tick = [&](net::Rank rank, float value) {
    std::vector<float> values(kFew * kColumns);
    for (Key key = 0; key < kFew; ++key) values[key * kColumns + 5] = value;
    pair.members[rank].add(pair.keys, values);
    pair.members[rank].end_clock();
    pair.job.run();
  };
  tick(1, 3);
  tick(1, 3);
  tick(0, 1e8F);                                    // as they came: 3 + 3 + 1e8, which is a multiple of 8
  tick(0, 0);                                       // by clock and worker: 1e8 + 3 + 3
  for (auto& member : pair.members) member.copy().flush(0, Bsp{});
  pair.job.run();
  for (const net::Rank rank : {0u, 1u}) EXPECT_EQ(pair.read(rank)[5], 1e8F) << "rank " << rank;
}

// Goal: columns alone are put into no copy but one that is there as its server sent it last.
TEST(Changes, a_copy_that_is_not_as_it_was_sent_takes_none) {
  const Placement placement({0}, 1);
  const Key key = 7;
  const auto sent = [&](Message message, Clock clock) {
    message.key_places()[0] = key;
    message.header.clock = clock;
    return message;
  };
  Message row = sent(Message::of_rows(table::Kind::rows, 1, 1, 4 * sizeof(double)), 1), change = sent(Message::of_changes(1, 1, 16 + sizeof(double)), 2);
  std::fill_n(row.value_places<double>(), 4, 1);
  reinterpret_cast<Blocks*>(change.key_places())[1] = 0b0100;
  reinterpret_cast<double*>(change.key_places())[2] = 5;
  Copies<double> copies(4, placement, 1, 1 << 20);
  const auto age = [&] { return copies.age(copies.find(key, 0)); };
  const auto values = [&] {
    const auto at = copies.row(copies.find(key, 0));
    return std::vector(at.begin(), at.end());
  };
  copies.ask(0, std::span(&key, 1), 0, 0);
  copies.change(0, change, {}, Instant{});
  EXPECT_FALSE(copies.is_usable(copies.find(key, 0), 0)) << "it has not come yet";
  copies.take(0, row, true, Instant{});
  copies.forget(std::span(&key, 1));
  copies.change(0, change, {}, Instant{});
  EXPECT_FALSE(copies.is_usable(copies.find(key, 0), 0)) << "it was forgotten";
  copies.take(0, row, true, Instant{});
  copies.orphan(0);
  copies.change(0, change, {}, Instant{});
  EXPECT_EQ(age(), 1) << "its server was lost";
  copies.take(0, row, true, Instant{});
  EXPECT_EQ(values(), (std::vector<double>{1, 1, 1, 1}));
  copies.change(0, change, {}, Instant{});
  EXPECT_EQ(age(), 2);
  EXPECT_EQ(values(), (std::vector<double>{1, 1, 5, 1}));
  copies.take(0, row, false, Instant{});
  copies.change(0, change, {}, Instant{});
  EXPECT_EQ(age(), 2) << "its server pushes it, which this member had not heard";
}

// Goal: a part that the server has and that is not in the copy yet is in the other columns afterwards, once: what confirms it later adds nothing.
TEST(Changes, own_parts_are_in_the_columns_that_do_not_come) {
  const Placement placement({0}, 1);
  const Key key = 7;
  Copies<double> copies(4, placement, 1, 1 << 20);
  Added<double> added(4, Encoding::none, placement, 1);
  copies.ask(0, std::span(&key, 1), 0, 0);
  Message row = Message::of_rows(table::Kind::rows, 1, 1, 4 * sizeof(double));
  row.key_places()[0] = key;
  std::fill_n(row.value_places<double>(), 4, 1);
  copies.take(0, row, true, Instant{});
  for (const Clock clock : {0, 1}) {
    added.add(0, std::span(&key, 1), std::vector<double>{10, 0, 10, 0});
    added.leave(0, 0, clock, true);
  }
  Message change = Message::of_changes(1, 1, 16 + sizeof(double));  // it has the first part, and what another added to column 2
  change.header.sequence = 1;
  change.key_places()[0] = key;
  reinterpret_cast<Blocks*>(change.key_places())[1] = 0b0100;
  reinterpret_cast<double*>(change.key_places())[2] = 16;
  copies.change(0, change, added.counted(0, 0, 1), Instant{});
  const auto values = [&] {
    const auto at = copies.row(copies.find(key, 0));
    return std::vector(at.begin(), at.end());
  };
  EXPECT_EQ(values(), (std::vector<double>{11, 1, 16, 1}));
  added.count_in(0, 0, 1, [&](const Part<double>& part) { copies.fold(part); });
  EXPECT_EQ(values(), (std::vector<double>{11, 1, 16, 1}));
  added.count_in(0, 2, 1, [&](const Part<double>& part) { copies.fold(part); });
  EXPECT_EQ(values(), (std::vector<double>{21, 1, 26, 1}));
}

// Goal: own parts are added as the server adds them, by clock and worker, not as they left: the same bits.
TEST(Changes, own_parts_are_added_in_the_servers_order) {
  constexpr double large = 0x1p53;                  // large + 1 - large is 0, large - large + 1 is 1
  const Placement placement({0}, 1);
  const Key key = 7;
  Copies<double> copies(4, placement, 2, 1 << 20);
  Added<double> added(4, Encoding::none, placement, 2);
  copies.ask(0, std::span(&key, 1), 0, 0);
  Message row = Message::of_rows(table::Kind::rows, 1, 1, 4 * sizeof(double));
  row.key_places()[0] = key;
  std::fill_n(row.value_places<double>(), 4, large);
  copies.take(0, row, true, Instant{});
  for (const std::uint32_t worker : {1u, 0u}) {
    added.add(worker, std::span(&key, 1), std::vector<double>(4, worker == 0 ? 1 : -large));
    added.leave(worker, 0, 0, true);
  }
  Message change = Message::of_changes(1, 1, 16 + sizeof(double));
  change.header.clock = 1;
  change.key_places()[0] = key;
  reinterpret_cast<Blocks*>(change.key_places())[1] = 0b0100;
  reinterpret_cast<double*>(change.key_places())[2] = 5;
  copies.change(0, change, added.counted(0, 1, 0), Instant{});
  const auto at = copies.row(copies.find(key, 0));
  EXPECT_EQ(std::vector(at.begin(), at.end()), (std::vector<double>{0, 0, 5, 0}));
}

}  // namespace
}  // namespace shoal::table

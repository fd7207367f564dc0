// Views: rows where they lie, that stay as they are.
#include "shoal/table/view.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"
#include "tests/from_environment.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

constexpr std::size_t kViewedWidth = 8;
const std::vector<Key> kViewed{3, 5, 8, 1'000'000};

// Rank 0 serves, and adds 1 to all rows in each clock; rank 1 views them.
struct Viewer {
  explicit Viewer(const Consistency& consistency) : job(2) {
    for (net::Rank rank = 0; rank < 2; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.servers = {0}}));
    for (auto& of : tables) members.push_back(of->worker().open<std::int64_t>({.name = "w", .width = kViewedWidth, .consistency = consistency}));
    job.run();
  }
  ~Viewer() {
    members.clear();
    tables.clear();
  }
  View<std::int64_t> view() { return members[1].view(kViewed); }
  void add() { members[0].add(kViewed, std::vector<std::int64_t>(kViewed.size() * kViewedWidth, 1)); }
  void end_clock() {
    add();
    for (auto& member : members) member.copy().tick(0);
    job.run();
  }

  net::InprocJob job;
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<std::int64_t>> members;
};

template <class T>
std::vector<const T*> places(const View<T>& view) {
  return {view.rows().begin(), view.rows().end()};
}
void expect_all(const View<std::int64_t>& view, std::int64_t expected) {
  ASSERT_EQ(view.size(), kViewed.size());
  for (std::size_t i = 0; i < view.size(); ++i) {
    for (const std::int64_t value : view[i]) EXPECT_EQ(value, expected) << "row " << i;
  }
}

// Goal: by any policy a view has the bits, ages and own increments of a read at the same moment. That views stay as they are whatever else happens, is part
// of all tests of protocols (scripted_workers.h).
TEST(Views, a_view_is_what_a_read_gives) {
  for (const std::uint64_t seed : seeds(40)) {
    ScriptedWorkers<float>::Options options;
    options.seed = seed;
    options.consistency = drawn_from<Consistency>({Bsp{}, Ssp{2}, Essp{2}, Cap{1}, Dssp{0, 2}, Async{}}, seed);
    SCOPED_TRACE(name(options.consistency) + ", seed " + std::to_string(seed));
    ScriptedWorkers<float> workers(options);
    std::size_t looked_at = 0;
    workers.run([&](std::uint32_t worker, Clock clock, Key key, std::span<const float>) {
      const auto read = workers.peek(worker, key);
      if (!read) return;
      const View<float> view = workers.table(worker).copy().view(0, std::span(&key, 1));
      EXPECT_TRUE(std::ranges::equal(view[0], *read)) << "row " << key;
      EXPECT_GE(view.age(), needed_age(options.consistency, std::min(clock, view.clock())));
      ++looked_at;
    });
    EXPECT_GT(looked_at, 0u);
  }
}

TEST(Views, rows_are_not_copied) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{0}), Consistency(Async{})}) {
    Viewer viewer(consistency);
    const auto one = viewer.view(), other = viewer.view();
    EXPECT_EQ(places(one), places(other));
    EXPECT_EQ(one.copied(), 0u);
    EXPECT_TRUE(one.is_one_piece());
    const std::vector<Key> turned{8, 5, 8};
    const auto third = viewer.members[1].view(turned);
    EXPECT_EQ(places(third), (std::vector{one.rows()[2], one.rows()[1], one.rows()[2]}));
    EXPECT_FALSE(third.is_one_piece());
  }
}

// Goal: a row with own increments is a copy that has them, until the servers have counted them in; another is none.
TEST(Views, own_increments_are_there_at_once) {
  Viewer viewer(Ssp{0});
  const auto before = viewer.view();
  const std::vector<Key> written{5, 8};
  for (const std::int64_t sum : {1, 2}) {
    viewer.members[1].add(written, std::vector<std::int64_t>(2 * kViewedWidth, 1));
    const auto view = viewer.view();
    EXPECT_EQ(view.copied(), 2u);
    for (const std::size_t i : {0u, 3u}) EXPECT_EQ(view.rows()[i], before.rows()[i]);
    for (const std::size_t i : {1u, 2u}) EXPECT_EQ(view[i][0], sum);
    const std::vector<Key> twice{8, 8};
    const auto repeated = viewer.members[1].view(twice);
    for (const std::size_t i : {0u, 1u}) EXPECT_EQ(repeated[i][kViewedWidth - 1], sum);
  }
  expect_all(before, 0);
  for (auto& member : viewer.members) member.copy().tick(0);
  viewer.job.run();
  const auto after = viewer.view();
  EXPECT_EQ(after.copied(), 0u);
  EXPECT_EQ(after[1][0], 2);
  expect_all(before, 0);
}

// Goal: what changes while a view lives goes elsewhere, once; and in place when no view lives.
TEST(Views, a_view_stays_as_it_is_while_its_rows_change) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{0}), Consistency(Essp{0}), Consistency(Cap{0}), Consistency(Async{})}) {
    SCOPED_TRACE(name(consistency));
    Viewer viewer(consistency);
    std::vector<const std::int64_t*> kept;
    {
      const auto first = viewer.view();
      viewer.end_clock();
      const auto second = viewer.view();
      viewer.end_clock();
      const auto third = viewer.view();
      expect_all(first, 0);
      expect_all(second, 1);
      expect_all(third, 2);
      EXPECT_EQ(first.clock(), 0);
      EXPECT_EQ(first.age(), 0);
      EXPECT_EQ(third.clock(), 2);
      for (std::size_t i = 0; i < third.size(); ++i) EXPECT_GE(third.age(i), needed_age(consistency, 2));
      EXPECT_NE(places(first), places(second));
      kept = places(third);
    }
    viewer.end_clock();
    const auto fourth = viewer.view();
    expect_all(fourth, 3);
    EXPECT_EQ(places(fourth), kept);
  }
}

// Goal: a view of few rows holds up no others, also when it is older than one that has ended.
TEST(Views, other_rows_are_written_in_place) {
  Viewer viewer(Essp{0});
  const auto before = places(viewer.view());
  const auto first = viewer.members[1].view(std::span(kViewed).first(1));
  viewer.end_clock();
  const auto after = places(viewer.view());
  EXPECT_NE(after[0], before[0]);
  EXPECT_TRUE(std::equal(after.begin() + 1, after.end(), before.begin() + 1));
  EXPECT_EQ(first[0][0], 0);
}

// Goal: a copy that is dropped, and asked for again into the same room, leaves the view alone.
TEST(Views, rows_that_are_dropped_stay_in_their_views) {
  Viewer viewer(Essp{0});
  viewer.members[1].intend(kViewed, 0);
  viewer.job.run();
  const auto view = viewer.view();
  for (int clock = 0; clock < 3; ++clock) viewer.end_clock();
  EXPECT_EQ(viewer.members[1].copy().copies(), 0u);
  expect_all(view, 0);
  expect_all(viewer.view(), 3);
  viewer.end_clock();
  expect_all(viewer.view(), 4);
  expect_all(view, 0);
}

TEST(Views, a_view_outlives_its_table) {
  View<std::int64_t> view;
  EXPECT_EQ(view.size(), 0u);
  {
    Viewer viewer(Essp{0});
    viewer.end_clock();
    view = viewer.view();
  }
  expect_all(view, 1);
  const View<std::int64_t> copy = std::exchange(view, {});
  expect_all(copy, 1);
}

// Goal: who views and never ticks, while rows are pushed, does not need more and more memory: what it sees lies in few places. Where an old view lives
// no row is written in its place, but the room of all is used again.
TEST(Views, rows_that_were_replaced_leave_their_room) {
  constexpr int kRounds = 4000;
  for (const bool old_one : {false, true}) {
    Viewer viewer(Async{});
    const auto first = old_one ? viewer.view() : View<std::int64_t>();
    std::set<const std::int64_t*> seen;
    for (int round = 0; round < kRounds; ++round) {
      const auto view = viewer.view();
      seen.insert(view.rows().begin(), view.rows().end());
      viewer.add();
      viewer.members[0].copy().tick(0);
      viewer.job.run();
      expect_all(view, round);
    }
    EXPECT_LE(seen.size(), old_one ? kRounds * kViewed.size() / 3 : 3 * kViewed.size());
    if (old_one) expect_all(first, 0);
  }
}

}  // namespace
}  // namespace shoal::table

// The blocking interface, between members over real sockets and shared memory of one host.
#include "shoal/table/tables.h"

#include <limits>
#include <random>

#include "tests/net/members.h"

namespace shoal::table {
namespace {

std::vector<Key> first_keys(Key count) {
  std::vector<Key> keys(count);
  for (Key key = 0; key < count; ++key) keys[key] = key * 0x9e3779b97f4a7c15u;
  return keys;
}

std::vector<Consistency> of(const std::vector<std::string>& names) {
  std::vector<Consistency> all;
  for (const std::string& name : names) all.push_back(consistency_from(name));
  return all;
}

// Goal: workers that switch 40 times, from any policy to any other, lose and repeat nothing: what was added before is read after, and every
// policy's own bound holds meanwhile. Increments are 1; a row is read, then added to, in each of two clocks.
TEST(Tables, a_table_goes_on_under_another_consistency) {
  constexpr net::Rank kMembers = 3;
  const auto jobs = net::join_all(kMembers);
  const auto keys = first_keys(70);
  const auto all = of({"bsp", "ssp:1", "essp:1", "cap:1", "dssp:0:2", "pssp:0:1", "vap:2", "vap-strong:2", "cvap:1:3", "cvap-strong:1:3",
                       "significance:0.5:1", "async"});
  net::each(kMembers, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto counts = tables.worker().open<std::int64_t>({.name = "counts", .consistency = all[0]});
    std::mt19937_64 random(5);          // the same walk on all members
    std::vector<std::int64_t> values(keys.size());
    const std::vector<std::int64_t> ones(keys.size(), 1);
    for (int walked = 0; walked < 40; ++walked) {
      SCOPED_TRACE(name(counts.consistency()) + " after " + std::to_string(walked));
      const Clock before = 2 * kMembers * walked;
      for (Clock clock = 0; clock < 2; ++clock) {
        counts.read(keys, values);
        const Clock others = (kMembers - 1) * std::max<Clock>(0, needed_age(counts.consistency(), clock) - longest_stay(counts.consistency()));
        for (const std::int64_t value : values) ASSERT_GE(value, before + clock + others);
        for (const std::int64_t value : values) ASSERT_LE(value, before + clock + 2 * (kMembers - 1));
        counts.add(keys, ones);
        counts.tick();
      }
      const Consistency next = all[random() % all.size()];
      counts.switch_to(next);
      EXPECT_EQ(name(counts.consistency()), name(next));
      EXPECT_EQ(counts.clock(), 2 * (walked + 1));
    }
    counts.barrier();
    counts.read(keys, values);
    for (const std::int64_t value : values) ASSERT_EQ(value, 40 * 2 * kMembers);
    counts.barrier();
  });
}

TEST(Tables, workers_that_switch_apart_are_told) {
  const auto jobs = net::join_all(2);
  std::atomic<int> told{0};
  net::each(2, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto rows = tables.worker().open<float>({.name = "w", .consistency = Ssp{1}});
    EXPECT_THROW(rows.switch_to(Bsp{2}), Error);  // it has no rule that steps
    try {
      rank == 0 ? rows.switch_to(Essp{2}) : rows.barrier();
      ADD_FAILURE();
    } catch (const Error& error) {
      told += std::string(error.what()).find("all workers switch to the same consistency together") != std::string::npos;
    }
  });
  EXPECT_GE(told, 1);  // the others are told that the job has ended, and by whom
}

// Goal: whatever the policy, after the barrier everybody reads the sum of what all have added. 300 rows a clock, in several messages.
TEST(Tables, counts_are_exact_after_the_barrier) {
  constexpr net::Rank kMembers = 3;
  constexpr Clock kClocks = 15;
  const auto jobs = net::join_all(kMembers);
  const auto keys = first_keys(300);
  std::uint16_t channel = 10;
  for (const Consistency& consistency : of({"bsp", "ssp:2", "essp:2", "cap:2", "vap:5", "cvap-strong:1:40", "significance:0.3:2", "dssp:0:2", "pssp:1:1",
                                         "async"})) {
    SCOPED_TRACE(name(consistency));
    ++channel;
    net::each(kMembers, [&](net::Rank rank) {
      Tables tables(jobs[rank]->transport(), {.channel = channel});
      auto counts = tables.worker().open<std::int64_t>({.name = "counts", .width = 500, .consistency = consistency});
      std::vector<std::int64_t> values(keys.size() * 500), ones(values.size(), rank + 1);
      for (Clock clock = 0; clock < kClocks; ++clock) {
        counts.read(keys, values);
        for (const std::int64_t value : values) EXPECT_GE(value, clock * (rank + 1));
        counts.add(keys, ones);
        counts.tick();
      }
      counts.barrier();
      counts.read(keys, values);
      for (const std::int64_t value : values) ASSERT_EQ(value, kClocks * (1 + 2 + 3));
      counts.barrier();  // nobody leaves while another reads
    });
  }
}

// Goal: who is done and waits at the barrier holds nobody back, under any policy: members tick 3, 6 and 9 times.
TEST(Tables, members_may_have_unequally_much_to_do) {
  const auto jobs = net::join_all(3);
  const std::vector<Key> keys{1, 2, 3};
  std::uint16_t channel = 10;
  for (const Consistency& consistency : of({"bsp", "ssp:1", "essp:1", "cap:1", "vap-strong:1", "cvap:1:1", "significance:2:1", "dssp:0:1", "pssp:0:2",
                                         "async"})) {
    ++channel;
    net::each(3, [&](net::Rank rank) {
      Tables tables(jobs[rank]->transport(), {.channel = channel});
      auto counts = tables.worker().open<std::int64_t>({.name = "counts", .consistency = consistency});
      std::vector<std::int64_t> values(3);
      for (net::Rank clock = 0; clock < 3 * (rank + 1); ++clock) {
        counts.read(keys, values);
        counts.add(keys, std::vector<std::int64_t>(3, 1));
        counts.tick();
      }
      counts.barrier();
      EXPECT_EQ(counts.clock(), 9);
      counts.read(keys, values);
      EXPECT_EQ(values, std::vector<std::int64_t>(3, 18)) << name(consistency);
      counts.barrier();
    });
  }
}

// Goal: who leaves after the last barrier disturbs nobody who is still in it; who leaves while others need its rows is named.
TEST(Tables, a_member_that_has_left_is_named_by_who_still_needs_it) {
  const auto jobs = net::join_all(2);
  const auto keys = first_keys(50);
  std::atomic<bool> gone{false};
  net::each(2, [&](net::Rank rank) {
    auto tables = std::make_unique<Tables>(jobs[rank]->transport());
    auto rows = tables->worker().open<float>({.name = "w", .consistency = Ssp{0}});
    rows.barrier();
    if (rank == 1) {
      tables.reset();
      gone = true;
      gone.notify_all();
      return;
    }
    gone.wait(false);
    std::vector<float> values(50);
    try {
      rows.read(keys, values);
      ADD_FAILURE() << "rows of a member that has left";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("table w: rank 1 has left while its rows are needed"), std::string::npos) << error.what();
    }
  });
}

TEST(Tables, what_is_assigned_is_read_by_all_after_a_barrier) {
  const auto jobs = net::join_all(2);
  const auto keys = first_keys(40);
  std::uint16_t channel = 10;
  for (const Consistency& consistency : {Consistency(Ssp{5}), Consistency(Essp{5})}) {
    ++channel;
    net::each(2, [&](net::Rank rank) {
      Tables tables(jobs[rank]->transport(), {.channel = channel});
      auto rows = tables.worker().open<double>({.name = "rows", .width = 2, .consistency = consistency, .initial = Initial::constant(7)});
      std::vector<double> values(80);
      rows.read(keys, values);
      for (const double value : values) EXPECT_EQ(value, 7);
      rows.barrier();
      if (rank == 0) rows.assign(keys, std::vector<double>(80, 1.5));
      rows.barrier();
      rows.read(keys, values);
      for (const double value : values) EXPECT_EQ(value, 1.5);
      rows.barrier();
    });
  }
}

TEST(Tables, a_table_of_two_widths_is_refused_in_one_line) {
  const auto jobs = net::join_all(2);
  std::atomic<int> refused{0};
  net::each(2, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    try {
      tables.worker().open<float>({.name = "w", .width = rank + 1u, .consistency = Bsp{}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      EXPECT_NE(std::string(error.what()).find("table w: opened as \"w: f32 x "), std::string::npos) << error.what();
      ++refused;
    }
    auto done = tables.worker().open<float>({.name = "done", .consistency = Bsp{}});
    done.barrier();
  });
  EXPECT_GE(refused, 1);
}

TEST(Tables, a_value_that_is_not_finite_is_refused_and_nothing_is_added) {
  const auto jobs = net::join_all(1);
  Tables tables(jobs[0]->transport());
  auto rows = tables.worker().open<float>({.name = "w", .width = 2, .consistency = Bsp{}});
  const std::vector<Key> keys{4, 9};
  try {
    rows.add(keys, std::vector<float>{1, 2, 3, std::numeric_limits<float>::quiet_NaN()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("table w: row 9 was given the value nan"), std::string::npos) << error.what();
  }
  std::vector<float> values(4);
  rows.read(keys, values);
  EXPECT_EQ(values, std::vector<float>(4, 0));
}

// Goal: an add is taken whole or not at all, wherever the value is that is not finite, in rows that are looked at together and in rows of several pieces (finite.h),
// with keys that repeat, whether or not something was added before in this clock; and what others read in the end is what was taken.
TEST(Tables, an_add_is_taken_whole_or_not_at_all) {
  constexpr std::size_t kOnce = 700, kTwice = 3;
  const auto jobs = net::join_all(2);
  auto keys = first_keys(kOnce);
  keys.insert(keys.end(), keys.begin(), keys.begin() + kTwice);
  net::each(2, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    for (const std::size_t width : {3, 64, 5000}) {
      SCOPED_TRACE(width);
      auto table = tables.worker().open<float>({.name = std::to_string(width), .width = width, .consistency = Essp{1}});
      std::vector<float> ones(keys.size() * width, 1), values(ones.size());
      const auto expect = [&](int adds) {
        table.read(keys, values);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const bool twice = i / width < kTwice || i / width >= kOnce;
          ASSERT_EQ(values[i], static_cast<float>(adds * (twice ? 2 : 1))) << i;
        }
      };
      for (int adds = 0; rank == 0 && adds < 2; ++adds) {
        for (const std::size_t wrong : {std::size_t{0}, kOnce * width - 1, ones.size() - 1}) {
          ones[wrong] = std::numeric_limits<float>::infinity();
          EXPECT_THROW(table.add(keys, ones), Error);
          ones[wrong] = 1;
          expect(adds);
        }
        table.add(keys, ones);
        expect(adds + 1);
      }
      table.barrier();
      expect(2);
      table.barrier();
    }
  });
}

TEST(Tables, a_value_that_is_not_finite_is_clipped_or_passes_where_that_is_said) {
  const auto jobs = net::join_all(1);
  Tables tables(jobs[0]->transport());
  constexpr float inf = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  const std::vector<Key> keys{4, 9};
  const std::vector<float> added{1, -inf, inf, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> values(4);
  auto clipped = tables.worker().open<float>({.name = "clipped", .width = 2, .consistency = Bsp{}, .not_finite = NotFinite::clip});
  clipped.add(keys, added);
  clipped.barrier();
  clipped.read(keys, values);
  EXPECT_EQ(values, (std::vector<float>{1, -largest, largest, 0}));
  auto passed = tables.worker().open<float>({.name = "passed", .width = 2, .consistency = Bsp{}, .not_finite = NotFinite::pass});
  passed.assign(keys, added);
  passed.barrier();
  passed.read(keys, values);
  EXPECT_TRUE(values[0] == 1 && values[1] == -inf && values[2] == inf && std::isnan(values[3]));
  for (const NotFinite policy : {NotFinite::refuse, NotFinite::clip, NotFinite::pass}) {
    EXPECT_EQ(spec_from(text_of({.name = "a", .not_finite = policy})).not_finite, policy);
  }
  EXPECT_THROW(check({.name = "a", .consistency = Vap{1}, .not_finite = NotFinite::clip}), Error);
  EXPECT_THROW(check({.name = "a", .encoding = Encoding::int8, .not_finite = NotFinite::pass}), Error);
  EXPECT_THROW(not_finite_from("no"), Error);
}

TEST(Tables, what_ends_one_member_ends_the_wait_of_the_others) {
  auto jobs = net::join_all(2);
  Tables tables(jobs[0]->transport());
  std::unique_ptr<Tables> others = std::make_unique<Tables>(jobs[1]->transport());
  auto rows = tables.worker().open<float>({.name = "w", .consistency = Bsp{}});
  others->worker().open<float>({.name = "w", .consistency = Bsp{}});
  jobs[1]->transport().post([&] { jobs[1]->transport().fail(Error(Code::io, "the disk is full", "rank 1")); });
  try {
    rows.barrier();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the disk is full"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace shoal::table

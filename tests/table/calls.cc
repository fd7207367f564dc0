// Functions that run on servers: what they see, that what they write is neither lost nor torn, and what goes wrong in them.
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "shoal/core/error.h"
#include "tests/net/members.h"
#include "tests/from_environment.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

using Counts = ScriptedWorkers<std::int64_t>;

// Goal: a call sees exactly the increments with timestamps below the clock that it tells, and its writes are neither lost nor do they hide an
// increment. Method: workers on the scripted network call in between, a function that returns the row and counts its calls in a column of its own.
void expect_exact_calls(const Consistency& consistency) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    Counts::Options options;
    options.consistency = consistency;
    options.seed = seed;
    options.members = static_cast<net::Rank>(1 + seed % 3);
    options.uneven = seed % 2 == 0;
    options.width = 4;
    Counts counts(options);
    for (net::Rank rank = 0; rank < options.members; ++rank) {
      counts.tables(rank).define<std::int64_t>("counts", "visit", [](const Block<std::int64_t>& block) {
        std::vector<std::int64_t> seen(block.rows.begin(), block.rows.end());
        for (std::size_t i = 3; i < block.rows.size(); i += 4) block.rows[i] += block.argument[0];
        return seen;
      });
    }
    std::vector<std::int64_t> visits(options.keys);
    std::mt19937_64 draw(seed);
    counts.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const std::int64_t> row) {
      for (std::uint32_t worker = 0; clock == Counts::kOver && worker < counts.size(); ++worker) {
        EXPECT_EQ(row[worker], counts.added(worker, key, clock)) << "of worker " << worker;
      }
      if (clock == Counts::kOver) {
        EXPECT_EQ(row[3], 7 * visits[key]);
        return;
      }
      if (draw() % 4 != 0) return;
      const std::int64_t by = 7;
      const Called<std::int64_t> called = counts.table(reader).call("visit", std::span(&key, 1), std::span(&by, 1));
      ASSERT_EQ(called.values.size(), 4u);
      EXPECT_GE(called.clock, needed_age(consistency, clock));
      EXPECT_EQ(called.values[3], 7 * visits[key]++);
      for (std::uint32_t worker = 0; clocked(consistency) && worker < counts.size(); ++worker) {
        EXPECT_EQ(called.values[worker], counts.added(worker, key, called.clock)) << "of worker " << worker << " at " << called.clock;
      }
    });
    EXPECT_GT(std::accumulate(visits.begin(), visits.end(), std::int64_t{0}), 0);
  }
}

TEST(Calls, see_whole_clocks_and_write_what_stays) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{2}), Consistency(Essp{2}), Consistency(Cap{1}), Consistency(Async{})}) {
    expect_exact_calls(consistency);
  }
}

// Goal: on threads of their own, too, each call changes a row once, while increments come.
TEST(Calls, of_all_members_at_once_lose_nothing) {
  constexpr net::Rank kMembers = 3;
  constexpr std::int64_t kTimes = 40;
  const auto jobs = net::join_all(kMembers);
  std::vector<Key> keys(50);
  std::iota(keys.begin(), keys.end(), Key{0});
  net::each(kMembers, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    tables.define<std::int64_t>("w", "more", [](const Block<std::int64_t>& block) {
      for (std::size_t i = 0; i < block.rows.size(); i += 2) ++block.rows[i];
      return std::vector<std::int64_t>(block.keys.size(), 0);
    });
    auto table = tables.worker().open<std::int64_t>({.name = "w", .width = 2, .consistency = Essp{1}});
    table.barrier();
    std::vector<std::int64_t> ones(2 * keys.size(), 1), values(2 * keys.size());
    for (std::int64_t time = 0; time < kTimes; ++time) {
      table.add(keys, ones);
      table.call("more", keys, {});
      table.tick();
    }
    table.barrier();
    table.read(keys, values);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], (i % 2 == 0 ? 2 : 1) * kTimes * kMembers);
    table.barrier();
    tables.leave();
  });
}

TEST(Calls, what_every_table_has_is_what_loops_say) {
  const auto jobs = net::join_all(2);
  const std::vector<Key> keys{5, 1, 9, 5};
  const std::vector<float> rows{3, -4, 0, 1, 1, -1, -2, 0.5F, 7};
  net::each(2, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto table = tables.worker().open<float>({.name = "w", .width = 3, .consistency = Bsp{}, .rule = Rule::adagrad(1)});
    auto whole = tables.worker().open<std::int32_t>({.name = "i", .width = 2, .consistency = Async{}});
    EXPECT_EQ(table.call("count", {}, {}).values, std::vector<double>{0}) << "of no rows";
    table.barrier();
    if (rank == 0) {
      table.assign(std::span(keys).first(3), rows);
      whole.assign(std::span(keys).first(2), std::vector<std::int32_t>{1 << 30, 1, -2, 2});
    }
    table.barrier();
    whole.barrier();
    EXPECT_EQ(table.call("sum_of_squares", keys, {}).values, (std::vector<double>{25, 3, 53.25, 25}));
    EXPECT_EQ(table.call("norm", std::span(keys).first(1), {}).values, std::vector<double>{5});
    EXPECT_EQ(table.call("sum_of_squares", {}, {}).values, std::vector<double>{81.25});
    EXPECT_EQ(table.call("count", {}, {}).values, std::vector<double>{3});
    const std::vector<double> two{2};
    EXPECT_EQ(table.call("top", keys, two).values, (std::vector<double>{1, 0, -4, 3, 0, 1, 1, 1, 2, 0, 7, -2, 1, 0, -4, 3}));
    EXPECT_EQ(whole.call("sum_of_squares", std::span(keys).first(2), {}).values, (std::vector<std::int64_t>{(std::int64_t{1} << 60) + 1, 8}));
    table.barrier();
    tables.leave();
  });
}

// Goal: a mistake in a function is one line at who called, and servers go on.
TEST(Calls, what_goes_wrong_is_told_to_who_called) {
  const auto jobs = net::join_all(2);
  const std::vector<Key> keys{1, 2, 3, 4};
  net::each(2, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto table = tables.worker().open<double>({.name = "w", .width = 1, .consistency = Ssp{1}, .initial = Initial::constant(2)});
    const auto define = [&](const std::string& function, const Function<double>& what) { tables.define<double>("w", function, what); };
    define("throws", [](const Block<double>&) -> std::vector<double> { throw std::runtime_error("no such thing\nand more"); });
    define("uneven", [](const Block<double>& block) { return std::vector<double>(block.keys.size() + 1); });
    define("infinite", [](const Block<double>& block) { return block.rows[0] = 1 / 0.0, std::vector<double>{}; });
    define("writes", [](const Block<double>& block) { return block.rows[0] = 5, std::vector<double>{}; });
    define("meets", [&](const Block<double>&) {
      table.barrier();
      return std::vector<double>();
    });
    define("keeps", [&](const Block<double>&) {
      (void)table.snapshot_begin("nowhere");
      return std::vector<double>();
    });
    define("asks", [&](const Block<double>& block) { return table.call("count", block.keys, {}).values; });
    table.barrier();
    const auto line = [&](const std::string& function, std::span<const Key> of) -> std::string {
      try {
        table.call(function, of, {});
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument);
        return error.what();
      }
      return "";
    };
    const auto one = std::span(keys).first(1);
    const std::string there = "table w: rank " + std::to_string(Placement({0, 1}, 1).first_holders(Placement({0, 1}, 1).shard_of(1)).front()) + ": function ";
    EXPECT_EQ(line("none", one), there + "none: no function is called \"none\" here");
    EXPECT_EQ(line("throws", one), there + "throws: no such thing");
    EXPECT_EQ(line("uneven", keys).find("table w: rank "), 0u);
    EXPECT_EQ(line("infinite", one).find(there + "infinite: table w: row 1 was given the value inf"), 0u);
    for (const std::string use : {"asks", "meets", "keeps"}) {
      EXPECT_EQ(line(use.c_str(), one), there + use + ": table w: a function that runs on a server may not use tables");
    }
    table.barrier();
    EXPECT_NE(line("writes", {}).find("writes rows, and was called on all of them; name the keys"), std::string::npos);
    EXPECT_EQ(table.call("sum_of_squares", one, {}).values, std::vector<double>{4}) << "nothing of a call that failed stays";
    table.barrier();
    tables.leave();
  });
}

}  // namespace
}  // namespace shoal::table

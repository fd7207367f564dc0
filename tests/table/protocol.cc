// What readers may and may not see, on the scripted network (invariants I1 to I4, I6 and I8 of the design notes). SHOAL_SEEDS widens the search.
#include <functional>
#include <map>

#include "shoal/core/fnv.h"
#include "shoal/core/seed.h"
#include "shoal/table/gate.h"
#include "tests/from_environment.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

using Counts = ScriptedWorkers<std::int64_t>;

using Also = std::function<void(Counts& counts, std::uint32_t reader, Key key, std::span<const std::int64_t> row)>;

// Goal: a read at clock c has everything with timestamps below c - s, all of its own, and nothing that nobody has added; nobody runs
// further ahead than the policy says; servers have each worker's increments in order; after the barrier every row holds every increment.
// likes: of which each seed takes one.
void expect_bounds(const Consistency& consistency, const Also& also = {}, const std::vector<Counts::Options>& likes = {{}}) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    Counts::Options options = likes[random_words(seed, 0, 0, 0)[0] % likes.size()];
    options.consistency = consistency;
    options.seed = seed;
    options.members = static_cast<net::Rank>(1 + seed % 4);
    options.workers_a_member = static_cast<std::uint32_t>(1 + seed % 3 / 2);
    if (seed % 5 == 0) options.servers = {options.members - 1};
    if (seed % 3 == 0 && options.members > 1) options.workers = {0};      // the others only serve
    if (seed % 7 == 0 && options.members > 2) options.workers = {0, 2};
    options.uneven = seed % 2 == 0;
    if (options.width == 0 && seed % 4 < 2) {                              // rows of which some columns change, or rows as narrow as can be
      options.width = 64;
      options.spread = Spread::some;
    }
    Counts counts(options);
    std::mt19937_64 draw(seed);
    counts.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const std::int64_t> row) {
      if (longest_stay(consistency) == 0 && draw() % 16 == 0) counts.expect_order_at_servers(reader);
      Clock slowest = Counts::kOver, quickest = 0;             // of those who are not done
      for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
        const bool over = clock == Counts::kOver;
        const Clock surely = worker == reader || over ? clock : needed_age(consistency, clock) - longest_stay(consistency);
        EXPECT_GE(row[worker], counts.added(worker, key, surely)) << "reader " << reader << " at clock " << clock << " of worker " << worker;
        EXPECT_LE(row[worker], counts.added(worker, key, whole_clocks(consistency) ? clock : counts.clock(worker) + 1));
        if (over || counts.is_done(worker)) continue;
        slowest = std::min(slowest, counts.clock(worker));
        quickest = std::max(quickest, counts.clock(worker));
      }
      if (const auto gap = widest_gap(consistency)) {
        EXPECT_LE(quickest - slowest, *gap + 1);
      }
      if (also) also(counts, reader, key, row);
    });
  }
}

TEST(Protocol, bsp_reads_whole_clocks) { expect_bounds(Bsp{}); }
TEST(Protocol, ssp_reads_are_at_most_s_clocks_old) {
  expect_bounds(Ssp{0});
  expect_bounds(Ssp{2});
}
TEST(Protocol, essp_reads_are_at_most_s_clocks_old) {
  expect_bounds(Essp{0});
  expect_bounds(Essp{3});
}
TEST(Protocol, cap_reads_are_at_most_s_clocks_old) {
  expect_bounds(Cap{0});
  expect_bounds(Cap{2});
}

// Goal: however far apart in time, copies of a row are near in value (increments are 1, each in its worker's column): weak, all workers' that
// one reader has and another has not sum to at most m for each worker; strong, to 3 m in all, m = max(1, bound). With a bound below
// one increment everything still ends, with one that nobody reaches nobody waits.
void expect_values_within(const Consistency& consistency, double bound, bool strong, const Counts::Options& like = {}) {
  std::uint64_t waits = 0;
  expect_bounds(consistency, [&](Counts& counts, std::uint32_t reader, Key key, std::span<const std::int64_t> row) {
    const double m = std::max(1.0, bound), most = strong ? 3 * m : m * counts.size();
    for (std::uint32_t other = 0; other < counts.size(); ++other) {
      const auto others = other == reader ? std::nullopt : counts.peek(other, key);
      if (!others) continue;
      double apart = 0;
      for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
        const auto by = static_cast<double>(std::abs(row[worker] - (*others)[worker]));
        EXPECT_LE(by, m) << "of worker " << worker;
        apart += by;
      }
      EXPECT_LE(apart, most);
    }
    waits = std::max(waits, counts.waits());
  }, {like});
  EXPECT_EQ(waits == 0, bound > 1000) << waits;
}

TEST(Protocol, vap_keeps_values_near) {
  for (const double bound : {0.01, 3.0, 1e6}) expect_values_within(Vap{bound}, bound, false);
}
TEST(Protocol, strong_vap_keeps_values_near_for_any_number_of_workers) {
  for (const double bound : {0.01, 3.0, 1e6}) expect_values_within(Vap{bound, true}, bound, true);
}
TEST(Protocol, cvap_keeps_values_and_clocks_near) {
  for (const bool strong : {false, true}) expect_values_within(Cvap{1, 3, strong}, 3, strong);
}
TEST(Protocol, what_is_not_significant_comes_later_but_comes) {
  expect_bounds(Significance{1, 0});
  expect_bounds(Significance{0.5, 2});
  expect_bounds(Significance{1e9, 3});
}
TEST(Protocol, dssp_reads_are_at_most_its_most_clocks_old) {
  expect_bounds(Dssp{0, 3});
  expect_bounds(Dssp{2, 2});
}
TEST(Protocol, pssp_reads_have_all_but_s_clocks_of_the_sampled_workers) {
  const std::uint64_t seed = id_of({.name = "counts"});
  for (const Pssp policy : {Pssp{0, 1}, Pssp{1, 2}, Pssp{1, 100}}) {
    expect_bounds(policy, [&](Counts& counts, std::uint32_t reader, Key key, std::span<const std::int64_t> row) {
      const Clock clock = counts.clock(reader);
      for (const std::uint32_t other : sampled(policy, seed, clock, reader, counts.size())) {
        EXPECT_GE(row[other], counts.added(other, key, clock - policy.staleness)) << "reader " << reader << " of worker " << other;
      }
    });
  }
}
// Goal: where links bear a quarter of what changes, rounds are cut and the rows that are left keep the promised clock down: the bounds hold.
TEST(Protocol, rounds_that_are_cut_promise_no_more_than_they_bring) {
  Counts::Options slow;
  slow.width = 2048;                   // 16 KiB: four rows a round
  slow.spread = Spread::all;
  slow.network.rate = 3e6;
  Counts::Options slow_in_part = slow;
  slow_in_part.width = 16384;          // 2 KiB for each block of columns that changes, of which an increment is in two
  slow_in_part.spread = Spread::some;
  for (const Consistency& consistency : {Consistency(Essp{2}), Consistency(Dssp{0, 2}), Consistency(Cap{1}), Consistency(Async{})}) {
    expect_bounds(consistency, {}, {slow, slow_in_part});
  }
}
// Goal: with room for one clock at a time whoever waits for room goes on, and what is promised holds.
TEST(Protocol, nobody_waits_for_ever_for_room) {
  Counts::Options narrow;
  narrow.most_under_way = 1;
  narrow.network.rate = 3e6;
  const auto few = [](Counts& counts, std::uint32_t reader, Key, std::span<const std::int64_t>) {
    const bool by_clock = counts.table(reader).consistency().index() == Consistency(Async{}).index();
    EXPECT_LE(counts.table(reader).copy().under_way(0), by_clock ? 2 * 4096u : ~std::size_t{0});
  };
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{2}), Consistency(Essp{2}), Consistency(Dssp{0, 2}), Consistency(Cap{1}),
                                         Consistency(Vap{3}), Consistency(Cvap{1, 3, true}), Consistency(Significance{0.5, 2}), Consistency(Async{})}) {
    expect_bounds(consistency, few, {narrow});
  }
}
TEST(Protocol, async_loses_nothing) { expect_bounds(Async{}); }

// Goal: whenever rows are unsubscribed, because their clocks are over, because they came in vain or for want of room, all the same holds: no copy is taken for
// newer than it is, whatever was under way, and what a worker has added stays with it.
TEST(Protocol, rows_that_are_unsubscribed_are_never_older_than_they_say) {
  const std::vector<Consistency> any{Bsp{}, Ssp{1}, Essp{0}, Essp{2}, Cap{1}, Vap{3}, Cvap{1, 3, true}, Significance{0.5, 2}, Dssp{0, 2}, Pssp{1, 2}, Async{}};
  Counts::Options some;
  some.intends = true;
  Counts::Options with_little_room = some;
  with_little_room.most_copies = 1000;     // about seven rows
  Counts::Options slow = with_little_room;
  slow.network.rate = 1e5;                 // much is under way
  for (const Consistency& consistency : any) expect_bounds(consistency, {}, {some, with_little_room, slow});
  for (const bool strong : {false, true}) expect_values_within(Vap{3, strong}, 3, strong, some);
}
TEST(Protocol, rows_that_come_in_vain_are_unsubscribed) {
  Counts::Options many;
  many.clocks = 40;
  many.keys = 200;
  many.pauses = false;
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Essp{1}), Consistency(Cap{2}), Consistency(Async{})}) {
    std::uint64_t unsubscribed = 0;
    const auto count = [&](Counts& counts, std::uint32_t reader, Key, std::span<const std::int64_t>) {
      unsubscribed = std::max(unsubscribed, counts.table(reader).telemetry().unsubscribed);
    };
    expect_bounds(consistency, count, {many});
    EXPECT_GT(unsubscribed, 0u) << name(consistency);
  }
}

// Goal: where clocks are whole, floats are added in the order of (clock, worker), so that what is read does not depend on the network; and in one clock all
// read the same, whatever came to them as whole rows, what in part, and what is their member's own.
TEST(Protocol, bsp_has_the_same_bits_on_any_network) {
  std::map<std::uint64_t, std::uint64_t> digests;
  for (const std::uint64_t seed : seeds(20)) {
    ScriptedWorkers<float>::Options options;
    options.consistency = Bsp{};
    options.seed = seed;
    options.workers_a_member = 2;
    options.width = 64;
    options.spread = Spread::some;
    ScriptedWorkers<float> workers(options);
    std::vector<Fnv1a> read(workers.size());
    std::map<std::pair<Clock, Key>, std::vector<std::byte>> rows;
    workers.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const float> row) {
      const auto bytes = std::as_bytes(row);
      read[reader].add_words(bytes);
      const auto first = rows.emplace(std::pair(clock, key), std::vector(bytes.begin(), bytes.end())).first;
      EXPECT_TRUE(std::ranges::equal(first->second, bytes)) << "worker " << reader << ", clock " << clock << ", row " << key << ", seed " << seed;
    });
    for (std::uint32_t worker = 0; worker < workers.size(); ++worker) {
      const auto first = digests.emplace(worker, read[worker].value()).first;
      EXPECT_EQ(first->second, read[worker].value()) << "worker " << worker << ", seed " << seed;
    }
  }
}

// Goal: telemetry counts every row that was read, by how many clocks it was behind, and no more than the policy bears.
TEST(Protocol, telemetry_tells_how_stale_reads_were) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{3}), Consistency(Essp{3})}) {
    Counts::Options options;
    options.consistency = consistency;
    Counts counts(options);
    std::uint64_t rows = 0;
    counts.run([&](std::uint32_t, Clock, Key, std::span<const std::int64_t>) { ++rows; });
    std::uint64_t told = 0, behind = 0;
    for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
      const Telemetry met = counts.table(worker).telemetry();
      told += met.rows_read();
      for (std::size_t bin = 1; bin < Telemetry::kBins; ++bin) {
        behind += met.behind[bin];
        EXPECT_TRUE(met.behind[bin] == 0 || static_cast<Clock>(bin) <= -needed_age(consistency, 0)) << name(consistency) << ", " << bin;
      }
      EXPECT_GT(met.bytes.added, 0u);
      EXPECT_GT(met.bytes.rows, 0u);
    }
    EXPECT_GE(told, rows);  // and those by which workers look at what they have just added
    EXPECT_EQ(behind == 0, whole_clocks(consistency));
  }
}

// Goal: a row is as old, in time, as the last word of its server that it has the age that it has: of a fetched one that which brought it, of a
// pushed one also each later clock.
TEST(Protocol, telemetry_tells_how_long_ago_rows_were_vouched_for) {
  for (const Consistency& consistency : {Consistency(Ssp{5}), Consistency(Essp{5})}) {
    net::InprocJob job(2, {.delay_min = Nanoseconds(1000), .delay_max = Nanoseconds(1000)});
    std::vector<std::unique_ptr<Tables>> tables;
    std::vector<Table<float>> workers;
    for (net::Rank rank = 0; rank < 2; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.servers = {0}}));
    for (auto& of : tables) workers.push_back(of->worker().open<float>({.name = "w", .consistency = consistency}));
    const Key key = 1;
    float value = 0;
    const auto read = [&] { workers[1].read(std::span(&key, 1), std::span(&value, 1)); };
    const auto pass = [&](Nanoseconds time) {
      const Instant until = job.now() + time;
      job.at(until - Instant{}, [] {});
      job.run([&] { return job.now() >= until; });
    };
    const auto spans = [&] {
      std::vector<std::size_t> read_in;
      const auto old = workers[1].telemetry().old;
      for (std::size_t span = 0; span < old.size(); ++span) read_in.insert(read_in.end(), old[span], span);
      return read_in;
    };
    workers[0].read(std::span(&key, 1), std::span(&value, 1));
    read();                                                       // it has just come
    pass(std::chrono::microseconds(10'000));
    read();                                                       // between 2^13 and 2^14 microseconds
    EXPECT_EQ(spans(), (std::vector<std::size_t>{0, 14})) << name(consistency);
    for (auto& worker : workers) worker.copy().tick(0);
    pass(std::chrono::microseconds(300));
    read();                                                       // the clock was told of meanwhile, to who is pushed rows
    EXPECT_EQ(spans().back(), 14u);
    EXPECT_EQ(spans()[1], pushes(consistency) ? 9u : 14u) << name(consistency);
    EXPECT_EQ(workers[1].telemetry().seconds_old(1), Telemetry::seconds_below(14));
    workers.clear();
    tables.clear();
  }
}

}  // namespace
}  // namespace shoal::table

// What is in a snapshot that is taken while workers go on, on the scripted network (invariant I7 of the design notes). SHOAL_SEEDS widens the search.
#include "shoal/table/snapshot.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "shoal/table/part_file.h"
#include "tests/from_environment.h"
#include "tests/refusal.h"
#include "tests/table/scratch.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

using Counts = ScriptedWorkers<std::int64_t>;
using Rows = std::map<Key, std::vector<std::int64_t>>;

Rows rows_of(const std::filesystem::path& folder) {
  const auto cut = read_index(folder);
  EXPECT_TRUE(cut);
  Rows rows;
  for (std::uint32_t part = 0; part < cut->parts; ++part) {
    PartReader reader(folder, *cut, part);
    for (Bytes chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
      const std::size_t count = chunk.size() / chunk_row_bytes(cut->spec);
      const auto* const keys = reinterpret_cast<const Key*>(chunk.data());
      const auto* const values = reinterpret_cast<const std::int64_t*>(keys + count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto* const row = values + i * cut->spec.width;
        EXPECT_TRUE(rows.emplace(keys[i], std::vector(row, row + cut->spec.width)).second) << "key " << keys[i] << " twice";
      }
    }
  }
  return rows;
}

// Goal: a snapshot that any worker asks for at its clock C, several at once, holds what everybody had added with timestamps below C and
// nothing else. Oracle: the increments, counted again.
void expect_exact_cuts(const Consistency& consistency) {
  const Scratch scratch;
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    Counts::Options options;
    options.consistency = consistency;
    options.seed = seed;
    options.members = static_cast<net::Rank>(1 + seed % 4);
    options.workers_a_member = static_cast<std::uint32_t>(1 + seed % 3 / 2);
    if (seed % 5 == 0) options.servers = {options.members - 1};
    if (seed % 3 == 0 && options.members > 1) options.workers = {0};
    options.uneven = seed % 2 == 0;
    Counts counts(options);
    std::mt19937_64 random(seed);
    std::vector<std::pair<Snapshot, std::filesystem::path>> taken;
    counts.run([&](std::uint32_t worker, Clock clock, Key, std::span<const std::int64_t>) {
      if (clock == Counts::kOver || random() % 150 != 0) return;
      const auto folder = scratch / (std::to_string(seed) + "-" + std::to_string(taken.size()));
      taken.emplace_back(counts.table(worker).snapshot_begin(folder.string()), folder);
      EXPECT_EQ(taken.back().first.clock(), clock);
    });
    for (auto& [snapshot, folder] : taken) {
      const Clock clock = snapshot.wait();
      Rows rows = rows_of(folder);
      for (Key key = 0; key < options.keys; ++key) {
        std::vector<std::int64_t>& row = rows[key];
        row.resize(counts.size());
        for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
          if (clocked(consistency)) {
            EXPECT_EQ(row[worker], counts.added(worker, key, clock)) << "key " << key << ", worker " << worker << ", clock " << clock;
          } else {
            EXPECT_LE(row[worker], counts.added(worker, key, Counts::kOver));
          }
        }
      }
      std::filesystem::remove_all(folder);
    }
  }
}

TEST(Snapshot, bsp_is_cut_at_the_clock) { expect_exact_cuts(Bsp{}); }
TEST(Snapshot, ssp_is_cut_at_the_clock) { expect_exact_cuts(Ssp{2}); }
TEST(Snapshot, essp_is_cut_at_the_clock) { expect_exact_cuts(Essp{3}); }
TEST(Snapshot, cap_is_cut_at_the_clock) { expect_exact_cuts(Cap{2}); }
TEST(Snapshot, async_takes_what_has_arrived) { expect_exact_cuts(Async{}); }

// Goal: each row of an image is as it was when the image was made, whatever happens to it meanwhile and however far the walk is; rows that
// came later are not in it.
TEST(Image, rows_are_as_they_were_when_it_was_made) {
  constexpr std::size_t kWidth = 5000;                       // a chunk holds some rows
  constexpr Key kKeys = 100;
  const Spec spec{.name = "rows", .type = DType::f64, .width = kWidth, .rule = Rule::sgd(0.5, 0.5)};
  std::mt19937_64 random(7);
  OwnedRows<double> rows(spec, 1);
  const std::vector<double> ones(kWidth, 1);
  std::vector<double> steps(kKeys + 50);
  const auto step = [&](Key key) { rows.step(spec.rule, rows.number_of(key), ones, 1, {}); };
  for (Key key = 0; key < kKeys; ++key) {
    for (steps[key] = static_cast<double>(random() % 4); steps[key] > 0; --steps[key]) step(key);
  }
  std::map<Key, std::vector<double>> before;
  for (Key key = 0; key < kKeys; ++key) rows.copy_out(rows.number_of(key), before.emplace(key, std::vector<double>(2 * kWidth)).first->second);

  RowsImage<double> image(rows), other(rows);
  std::size_t seen = 0;
  for (Bytes chunk = image.next(); !chunk.empty(); chunk = image.next()) {
    const std::size_t count = chunk.size() / chunk_row_bytes(spec);
    const auto* const keys = reinterpret_cast<const Key*>(chunk.data());
    for (std::size_t i = 0; i < count; ++i, ++seen) {
      const auto* const row = reinterpret_cast<const double*>(keys + count) + i * 2 * kWidth;
      EXPECT_EQ(std::vector(row, row + 2 * kWidth), before.at(keys[i])) << "key " << keys[i];
    }
    for (int change = 0; change < 20; ++change) {
      const Key key = random() % (kKeys + 50);
      const auto number = rows.number_of(key);
      switch (random() % 4) {
        case 0: rows.assign(number, ones); break;
        case 1: rows.add(number, 1, ones, 0); break;
        case 2:
          rows.overlay(number, ones, 0);
          rows.settle(number, ones);
          break;
        default: step(key);
      }
    }
  }
  EXPECT_EQ(seen, kKeys);
  rows.reset();
  for (Bytes chunk = other.next(); !chunk.empty(); chunk = other.next()) {
    const std::size_t count = chunk.size() / chunk_row_bytes(spec);
    const auto* const keys = reinterpret_cast<const Key*>(chunk.data());
    const auto* const row = reinterpret_cast<const double*>(keys + count);
    EXPECT_EQ(std::vector(row, row + 2 * kWidth), before.at(keys[0]));
    seen -= count;
  }
  EXPECT_EQ(seen, 0u);
}

// Servers that share a disk clear up after a snapshot each in its own time; another may have begun on the next one. Each removes what is its own, and the last
// one what no server of now is to write.
TEST(Snapshot, clearing_up_leaves_what_other_servers_write) {
  const Scratch scratch;
  const std::string kept(16, 'a'), old(16, '0'), next(16, 'b');
  const auto make = [&](const std::string& name) { std::ofstream(scratch / name) << "x"; };
  const std::vector<std::string> stay = {"part-0-of-2-" + kept + ".shoal", "part-1-of-2-" + kept + ".shoal", "part-1-of-2-" + next + ".shoal",
                                         ".part-1-of-2-" + next + ".shoal.77", "part-1-of-2-" + old + ".shoal", "part-x-of-2-" + old + ".shoal", "table.json"};
  const std::vector<std::string> go = {"part-0-of-2-" + old + ".shoal", ".part-0-of-3-" + old + ".shoal.76"}, beyond = {"part-2-of-3-" + old + ".shoal"};
  for (const auto* names : {&stay, &go, &beyond}) std::ranges::for_each(*names, make);
  const auto there = [&](const std::string& name) { return std::filesystem::exists(scratch / name); };
  keep_parts(scratch / "", kept, 0, 2);
  EXPECT_TRUE(std::ranges::all_of(stay, there) && std::ranges::all_of(beyond, there) && std::ranges::none_of(go, there));
  keep_parts(scratch / "", next, 1, 2);
  EXPECT_TRUE(there(stay[0]) && there(stay[2]) && there(stay[3]) && there("table.json"));
  EXPECT_FALSE(there(stay[1]) || there(stay[4]) || there(beyond[0]));
}

// Two at a time in one folder would each take the other's parts for old ones.
TEST(Snapshot, a_folder_is_written_by_one_snapshot_at_a_time) {
  const Scratch scratch;
  auto first = std::make_unique<FolderClaim>(scratch / "a");
  EXPECT_NE(refusal([&] { FolderClaim(scratch / "b" / ".." / "a"); }).find("a snapshot is being written there"), std::string::npos);
  FolderClaim other(scratch / "b");
  first.reset();
  EXPECT_NO_THROW(FolderClaim(scratch / "a"));
}

}  // namespace
}  // namespace shoal::table

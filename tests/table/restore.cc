// Snapshots on the disk: restored on any number of servers, and what may be wrong with them. Members over real sockets of one host.
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "shoal/core/error.h"
#include "shoal/table/tables.h"
#include "tests/net/members.h"
#include "tests/table/scratch.h"

namespace shoal::table {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kRestoredWidth = 300;

std::vector<Key> some_keys(Key count) {
  std::vector<Key> keys(count);
  for (Key key = 0; key < count; ++key) keys[key] = key * 0x9e3779b97f4a7c15u;
  return keys;
}

Spec stepped(const Rule& rule) { return {.name = "w", .width = kRestoredWidth, .consistency = Bsp{}, .initial = Initial::normal(0, 1, 3), .rule = rule}; }
Spec adam() { return stepped(Rule::adam(0.01)); }

// Different in every worker, clock and place; some digits, so that sums round.
std::vector<float> gradients(std::uint32_t worker, Clock clock, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(spread((worker * 1000 + static_cast<std::uint64_t>(clock)) << 20 | i) % 1999) / 7;
  return values;
}

// Clocks of three workers; what rank 0 reads after them.
std::vector<float> steps(Table<float>& table, net::Rank rank, const std::vector<Key>& keys, Clock until) {
  while (table.clock() < until) {
    table.add(keys, gradients(rank, table.clock(), keys.size() * kRestoredWidth));
    table.tick();
  }
  table.barrier();
  std::vector<float> values(keys.size() * kRestoredWidth);
  table.read(keys, values);
  table.barrier();
  return values;
}

void snapshot_after(const fs::path& folder, Clock clocks, const std::vector<Key>& keys, std::vector<float>* at_the_cut = nullptr,
                    std::vector<float>* later = nullptr, const Spec& spec = adam()) {
  const auto jobs = net::join_all(3);
  net::each(3, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto table = tables.worker().open<float>(spec);
    const auto values = steps(table, rank, keys, clocks);
    if (rank == 1) {
      EXPECT_EQ(table.snapshot(folder.string()), clocks);
    }
    const auto further = steps(table, rank, keys, 2 * clocks);
    if (rank == 0 && at_the_cut) *at_the_cut = values, *later = further;
  });
}

// Goal: on another number of servers rows have the same bits and clocks go on; with as many workers, training goes on with the bits of a run
// that was not interrupted, so the state of the rule is there, too.
void expect_the_bits_of_the_snapshot(const Spec& spec) {
  const Scratch scratch;
  const auto keys = some_keys(500);
  std::vector<float> at_the_cut, later;
  snapshot_after(scratch / "w", 5, keys, &at_the_cut, &later, spec);
  for (const net::Rank members : {1u, 2u, 3u, 5u}) {
    SCOPED_TRACE(std::to_string(members) + " members");
    const auto jobs = net::join_all(members);
    net::each(members, [&](net::Rank rank) {
      Tables tables(jobs[rank]->transport(), {.servers = members == 3 ? std::vector<net::Rank>{0, 2} : std::vector<net::Rank>{}});
      auto table = tables.worker().open<float>(spec);
      const std::vector<Key> other{7, 8};                  // what was there before
      std::vector<float> values(keys.size() * kRestoredWidth), of_other(2 * kRestoredWidth), unwritten(2 * kRestoredWidth);
      table.read(other, unwritten);
      table.add(other, gradients(rank, 99, 2 * kRestoredWidth));
      table.tick();
      EXPECT_EQ(table.restore((scratch / "w").string()), 5);
      EXPECT_EQ(table.clock(), 5);
      table.read(keys, values);
      EXPECT_EQ(values, at_the_cut);
      table.read(other, of_other);
      EXPECT_EQ(of_other, unwritten);
      if (members == 3) {
        EXPECT_EQ(steps(table, rank, keys, 10), later);
      }
      table.barrier();
    });
  }
}
TEST(Restore, on_any_number_of_servers_the_bits_are_those_of_the_snapshot) {
  expect_the_bits_of_the_snapshot(adam());
  expect_the_bits_of_the_snapshot(stepped(Rule::adaptive_revision(0.01)));
}

// Goal: each mistake is one line that names the file, on every member, and the table stays as it was.
std::vector<std::string> refusals(const std::string& path, const Spec& spec) {
  const auto jobs = net::join_all(2);
  std::vector<std::string> lines(2);
  net::each(2, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto table = tables.worker().open<float>(spec);
    const std::vector<Key> keys{0};
    table.add(keys, std::vector<float>(spec.width, 1));
    table.tick();
    table.barrier();
    std::vector<float> before(spec.width), after(spec.width);
    table.read(keys, before);
    try {
      table.restore(path);
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.code()), 2) << error.what();
      lines[rank] = error.what();
    }
    table.barrier();
    table.read(keys, after);
    EXPECT_EQ(before, after);
    table.barrier();
  });
  return lines;
}

TEST(Restore, what_does_not_fit_is_refused_in_one_line) {
  const Scratch scratch;
  snapshot_after(scratch / "w", 2, some_keys(40));
  const std::string path = (scratch / "w").string();
  const auto expect = [&](const std::string& where, const Spec& spec, const std::string& line) {
    for (const std::string& said : refusals(where, spec)) EXPECT_EQ(said, line);
  };
  Spec spec = adam();
  expect((scratch / "none").string(), spec, (scratch / "none").string() + ": there is no snapshot of a table");
  spec.width = 7;
  expect(path, spec, path + ": a snapshot with rows of 300, table w has 7");
  spec = adam();
  spec.rule = Rule::sgd(0.1);
  expect(path, spec, path + ": a snapshot with the rule adam:0.01:0.9:0.999:1e-08, table w has sgd:0.1:0");
  spec = adam();
  spec.initial.seed = 4;
  expect(path, spec, path + ": a snapshot with other initial values, table w has its own");
}

fs::path part(const fs::path& folder, const std::string& number) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("part-" + number)) return entry.path();
  }
  return {};
}

TEST(Restore, parts_that_are_missing_cut_short_changed_or_mixed_up_are_named) {
  const Scratch scratch;
  const fs::path folder = scratch / "w";
  snapshot_after(folder, 2, some_keys(40));
  const fs::path file = part(folder, "1");
  const std::string name = file.string();
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto expect_refused = [&](const std::string& content, const std::string& what) {
    std::ofstream(file, std::ios::binary) << content;
    int named = 0;
    for (const std::string& line : refusals(folder.string(), adam())) {
      EXPECT_FALSE(line.empty()) << what;
      named += line.starts_with(name);
    }
    EXPECT_GE(named, 1) << what;
  };
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    expect_refused(whole.substr(0, length), std::to_string(length) + " of " + std::to_string(whole.size()) + " bytes");
  }
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 9) {
    if (at > 16 && at < 400) continue;                    // the text: another rate may be a word as good
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    expect_refused(changed, "a bit of byte " + std::to_string(at));
  }
  expect_refused(whole + "x", "a byte more");
  std::ifstream other(part(folder, "0"), std::ios::binary);
  expect_refused({std::istreambuf_iterator<char>(other), {}}, "another part");
  fs::remove(file);
  for (const std::string& line : refusals(folder.string(), adam())) {
    EXPECT_EQ(line, name + ": no worker sees this part of the snapshot (the folder must be visible where it was written, or shared)");
  }
  std::ofstream(folder / "table.json") << "{\"format\": 3";
  for (const std::string& line : refusals(folder.string(), adam())) EXPECT_EQ(line, (folder / "table.json").string() + ": damaged, or no snapshot of a table");
}

// Goal: where the disk is full, or no folder can be, who asks is told in one line and what was there stays; the next one that succeeds leaves
// nothing of those before.
TEST(SnapshotRestored, one_that_cannot_be_written_leaves_the_one_before) {
  const Scratch scratch;
  const auto keys = some_keys(400);
  const fs::path folder = scratch / "w";
  std::vector<float> first, later;
  snapshot_after(folder, 2, keys, &first, &later);
  const auto jobs = net::join_all(1);
  Tables tables(jobs[0]->transport());
  auto table = tables.worker().open<float>(adam());
  const auto refused = [&](const std::string& path) -> std::string {
    try {
      table.snapshot(path);
      return "taken";
    } catch (const Error& error) {
      return error.what();
    }
  };
  std::ofstream(scratch / "file") << "no folder";
  const std::string no_folder = refused((scratch / "file" / "w").string());
  EXPECT_TRUE(no_folder.starts_with("rank 0: " + (scratch / "file").string()) && no_folder.ends_with("Not a directory")) << no_folder;

  EXPECT_EQ(table.restore(folder.string()), 2);
  const auto on_the_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{64 * 1024, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string full = refused(folder.string());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, on_the_signal);
  EXPECT_NE(full.find(": cannot be written: File too large (the snapshot before it is whole)"), std::string::npos) << full;

  EXPECT_EQ(table.restore(folder.string()), 2);
  std::vector<float> values(keys.size() * kRestoredWidth);
  table.read(keys, values);
  EXPECT_EQ(values, first);
  table.tick();
  EXPECT_EQ(table.snapshot(folder.string()), 3);
  table.tick();
  EXPECT_EQ(table.snapshot(folder.string()), 4);  // after what the one before removes
  table.tick();
  EXPECT_EQ(table.restore(folder.string()), 4);
  table.barrier();
}

}  // namespace
}  // namespace shoal::table

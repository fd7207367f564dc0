// What was made once is not made again, and nothing that lies in the folder can do harm. Method: makers that count how often they are asked.
#include "shoal/collective/program_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "shoal/collective/build.h"
#include "shoal/collective/known_network.h"
#include "shoal/collective/modes.h"
#include "shoal/collective/synthesize.h"
#include "shoal/core/aside.h"

namespace shoal::collective {
namespace {

namespace fs = std::filesystem;

topo::Topology two_speeds(double slow = 25e6) {
  topo::Topology topology;
  topology.name = "two speeds";
  topology.switches = {"s"};
  for (topo::Node host = 0; host < 5; ++host) topology.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 5; ++host) topology.link_both_ways(host, 5, host < 2 ? slow : 125e6);
  return topology;
}

class Cached : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  Program ask(const topo::Topology& topology = two_speeds(), Collective collective = Collective::all_reduce,
              std::uint32_t root = 0) {
    return ProgramCache(folder_, most_).kept_or_made(topology, collective, "trees", root, [&] {
      ++made_;
      return synthesize(topology, collective, Synthesis::few, root);
    });
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    if (!fs::exists(folder_)) return all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (!entry.is_directory()) all.push_back(entry.path());
    }
    return all;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("shoal_cache_" + std::to_string(getpid()));
  std::uintmax_t most_ = ProgramCache::kMostKeptBytes;
  int made_ = 0;
};

TEST_F(Cached, the_second_time_nothing_is_computed) {
  const std::string first = to_json(ask());
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(to_json(ask()), first);
  EXPECT_EQ(made_, 1);
  topo::Topology renamed = two_speeds();
  renamed.name = renamed.hosts[0] = "another";
  EXPECT_EQ(to_json(ask(renamed)), first);
  EXPECT_EQ(made_, 1);
}

TEST_F(Cached, another_network_collective_or_root_is_another_program) {
  ask();
  ask(two_speeds(50e6));
  ask(two_speeds(), Collective::all_gather);
  ask(two_speeds(), Collective::broadcast, 1);
  ask(two_speeds(), Collective::broadcast, 2);
  EXPECT_EQ(made_, 5);
  EXPECT_EQ(files().size(), 5U);
}

// Oracle: a program of a made-up rate, but sound, comes back from made_for() and program_for(); so they ask the cache.
TEST_F(Cached, known_networks_and_programs_by_name_come_from_it) {
  const ProgramCache cache(folder_);
  KnownNetwork::made_for(two_speeds(), cache);
  EXPECT_EQ(files().size(), 3U + 2 * 5);  // broadcast and reduce: for each root
  Program other = build(Collective::all_reduce, "ring", 5);
  certify(other, two_speeds());
  other.name = "trees";
  for (const fs::path& file : files()) {
    if (file.string().find("all_reduce") != std::string::npos) write_aside(file, to_json(other));
  }
  EXPECT_EQ(to_json(KnownNetwork::made_for(two_speeds(), cache)->made(Collective::all_reduce, kTrees)->program()),
            to_json(other));
  EXPECT_EQ(to_json(program_for(two_speeds(), Collective::all_reduce, "trees", 0, cache)), to_json(other));
  EXPECT_NE(to_json(program_for(two_speeds(), Collective::all_reduce, "exact", 0, cache)), to_json(other));
}

TEST_F(Cached, what_is_damaged_or_of_others_is_made_anew) {
  const std::string good = to_json(ask());
  const fs::path file = files().at(0);
  Program wrong = program_from_json(good);  // whole, but it adds one contribution less
  for (auto& lanes : wrong.lanes) {
    for (Lane& lane : lanes) {
      for (Loop& loop : lane) {
        for (Op& op : loop.ops) op.kind = op.kind == OpKind::receive_reduce ? OpKind::receive : op.kind;
      }
    }
  }
  Program boasting = program_from_json(good);
  boasting.certificate->rate *= 2;
  Program bare = program_from_json(good);
  bare.certificate.reset();
  const std::string others[] = {"",
                                "{",
                                good.substr(0, good.size() / 2),
                                "\x7f"
                                "ELF",
                                to_json(wrong),
                                to_json(boasting),
                                to_json(bare),
                                to_json(synthesize(two_speeds(30e6), Collective::all_reduce)),
                                to_json(synthesize(two_speeds(), Collective::all_reduce, Synthesis::exact)),
                                to_json(synthesize(two_speeds(), Collective::reduce))};
  int expected = 1;
  for (const std::string& text : others) {
    write_aside(file, text);
    EXPECT_EQ(to_json(ask()), good) << text.substr(0, 200);
    EXPECT_EQ(made_, ++expected) << text.substr(0, 200);
    EXPECT_EQ(to_json(ask()), good);  // it was mended
    EXPECT_EQ(made_, expected);
  }
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // nobody ever writes to it
  EXPECT_EQ(to_json(ask()), good);
}

// Two processes begin with an empty folder, over and over: each has the right program each time.
TEST_F(Cached, processes_may_share_it) {
  const std::string good = to_json(synthesize(two_speeds(), Collective::all_reduce));
  pid_t children[2];
  for (pid_t& child : children) {
    child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) continue;
    bool right = true;
    for (int round = 0; round < 50 && right; ++round) {
      right = to_json(ask()) == good;
      if (round % 3 == 0) {
        std::error_code gone;
        fs::remove_all(folder_, gone);
      }
    }
    _exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST_F(Cached, a_folder_that_cannot_be_had_is_none) {
  std::ofstream(folder_) << "a file";  // so for root, too, whom no permission stops
  const std::string first = to_json(ask());
  EXPECT_EQ(to_json(ask()), first);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(to_json(ProgramCache().kept_or_made(two_speeds(), Collective::all_reduce, "trees", 0,
                                                [&] { return synthesize(two_speeds(), Collective::all_reduce); })),
            first);
}

TEST_F(Cached, its_size_is_bounded_and_the_longest_unused_goes_first) {
  ask();
  const auto each = fs::file_size(files().at(0));
  most_ = each * 5 / 2;
  fs::last_write_time(files().at(0), fs::file_time_type::clock::now() - std::chrono::hours(2));
  const fs::path old = files().at(0);
  ask(two_speeds(50e6));
  EXPECT_TRUE(fs::exists(old));
  ask(two_speeds(60e6));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(files().size(), 2U);
  most_ = each / 2;
  const int before = made_;
  ask();
  ask();
  EXPECT_EQ(made_, before + 2);  // larger than all that may be kept
}

TEST(ProgramCache, the_environment_says_where) {
  const auto path = fs::path(testing::TempDir()) / ("shoal_cache_user_" + std::to_string(getpid()));
  const auto asked_for = [] {
    return ProgramCache::of_user().kept_or_made(two_speeds(), Collective::all_reduce, "trees", 0,
                                                [] { return synthesize(two_speeds(), Collective::all_reduce); });
  };
  const char* const before = std::getenv("SHOAL_CACHE");
  const std::string kept = before ? before : "";
  setenv("SHOAL_CACHE", path.c_str(), 1);
  asked_for();
  EXPECT_TRUE(fs::exists(path / "programs"));
  fs::remove_all(path);
  setenv("SHOAL_CACHE", "none", 1);
  asked_for();
  EXPECT_FALSE(fs::exists(path));
  unsetenv("SHOAL_CACHE");
  if (before) setenv("SHOAL_CACHE", kept.c_str(), 1);
}

}  // namespace
}  // namespace shoal::collective

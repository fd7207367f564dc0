// Requests for more members: what becomes of a run with them, and how who asks and the launcher hear of each other.
#include "app/joining.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "app/run.h"
#include "tests/refusal.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

fs::path fresh_folder() {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder = fs::path(::testing::TempDir()) / (std::string("joining-") + test->name());
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(Joining, members_have_a_place_or_the_line_says_why_not) {
  const auto with = [](Launch what, unsigned members, const std::string& hosts) { return with_more(std::move(what), {members, hosts, {}}); };
  Launch here;
  here.members = 4;
  EXPECT_EQ(with(here, 2, "").members, 6u);
  EXPECT_EQ(refusal([&] { with(here, most_members, ""); }), "-n: the run would have 1028 members, and 1024 is the most");
  EXPECT_EQ(refusal([&] { with(here, 1, "c"); }), "--hosts: this run's members meet on one machine (leave it out)");
  Launch far = here;
  far.far = {{"a", 2}, {"a", 2}, {"b", 2}, {"b", 2}};
  const Launch more = with(far, 2, "c,d:2");
  ASSERT_EQ(more.far.size(), 6u);
  EXPECT_EQ(more.far[4].name, "c");
  EXPECT_EQ(more.far[5].name, "d");
  EXPECT_EQ(refusal([&] { with(far, 1, ""); }), "--hosts: this run's members are on other hosts (say on which the others are to be)");
  EXPECT_EQ(refusal([&] { with(far, 3, "c,d"); }), "--hosts: 3 members do not fit on c,d (say how many a host takes, as in a:4,b:4)");
  Launch in_lab = here;
  in_lab.lab.emplace();
  in_lab.lab->hosts.resize(5);
  EXPECT_EQ(with(in_lab, 1, "").members, 5u);
  EXPECT_EQ(refusal([&] { with(in_lab, 2, ""); }), "-n: its lab has 5 hosts for 6 members (begin with a larger lab)");
}

TEST(Joining, who_asks_hears_what_the_launcher_says) {
  const fs::path run = fresh_folder();
  EXPECT_FALSE(takes_members(run));
  const Joining desk(run);
  EXPECT_TRUE(takes_members(run));
  std::string ranks, refused;
  std::jthread asking([&] {
    ranks = ask_to_join(run, {2, "c,d", {}}, 60s);
    refused = refusal([&] { ask_to_join(run, {1, "", {}}, 60s); }, Code::mismatch);
  });
  const auto next = [&] {
    for (;;) {
      if (const auto request = desk.look()) return *request;
      std::this_thread::yield();
    }
  };
  const JoinRequest first = next();
  EXPECT_EQ(first.members, 2u);
  EXPECT_EQ(first.hosts, "c,d");
  EXPECT_FALSE(desk.is_withdrawn(first));
  desk.answer(first, "4, 5");
  desk.refuse(next(), Error(Code::mismatch, "rank 0 has Torch 1, rank 6 has Torch 2", "join", "it must be the same"));
  asking.join();
  EXPECT_EQ(ranks, "4, 5");
  EXPECT_EQ(refused, "join: rank 0 has Torch 1, rank 6 has Torch 2 (it must be the same)");
  EXPECT_TRUE(desk.is_withdrawn(first));
}

// Whoever has been killed asks for nothing any more, and what others leave there is no request.
TEST(Joining, what_nobody_waits_for_is_no_request) {
  const fs::path run = fresh_folder();
  const Joining desk(run);
  std::ofstream(run / "join" / "dead.request") << R"({"members": 2, "hosts": ""})";
  fs::create_directory(run / "join" / "folder.request");
  EXPECT_FALSE(desk.look());
  EXPECT_EQ(refusal([&] { ask_to_join(run, {1, "", {}}, 300ms); }, Code::timeout).find(run.string() + ": it could not take them for "), 0u);
  EXPECT_FALSE(desk.look());
}

TEST(Joining, a_launcher_that_is_gone_takes_nobody) {
  const fs::path run = fresh_folder();
  { const Joining desk(run); }
  EXPECT_FALSE(fs::exists(run / "join"));
  fs::create_directory(run / "join");
  std::ofstream(run / "join" / "launcher") << "";  // as one that was killed leaves it
  EXPECT_FALSE(takes_members(run));
  EXPECT_EQ(refusal([&] { ask_to_join(run, {1, "", {}}, 60s); }),
            run.string() + ": takes no more members: it is over, or a lost one would not be replaced in it (shoal run --on-peer-lost rejoin)");
}

}  // namespace
}  // namespace shoal::app

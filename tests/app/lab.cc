// Labs with real network namespaces. Where this machine permits none the tests are skipped, except those of
// mistakes that are seen before anything is made.
#include "app/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

// A name that no other test process uses at the same time.
std::string lab_name(const std::string& what) { return "t" + std::to_string(::getpid()) + "-" + what; }

class LabTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto made = up({"-n", "1", "--rate", "1gbit"}, "probe");
    if (made.status == 2 && made.err.find("does not permit network namespaces") != std::string::npos) {
      GTEST_SKIP() << made.err;
    }
    ASSERT_EQ(made.status, 0) << made.err;
    ASSERT_EQ(shoal(folder, {"lab", "down", lab_name("probe")}).status, 0);
  }
  void TearDown() override {
    for (const auto& name : made_) shoal(folder, {"lab", "down", name});
  }
  Outcome up(std::vector<std::string> words, const std::string& what = "lab") {
    made_.push_back(lab_name(what));
    words.insert(words.begin(), {"lab", "up"});
    words.insert(words.end(), {"--name", lab_name(what)});
    return shoal(folder, words);
  }
  Outcome on(const std::string& host, std::vector<std::string> command) {
    command.insert(command.begin(), {"lab", "exec", lab_name("lab"), host, "--"});
    return shoal(folder, command);
  }
  std::vector<std::string> namespaces(const std::string& what) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator("/run/netns")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("shoal-" + lab_name(what) + "-")) found.push_back(name);
    }
    return found;
  }

  const Folder folder;

 private:
  std::vector<std::string> made_;
};

TEST_F(LabTest, up_says_what_it_made_and_down_leaves_nothing) {
  const auto made = up({"-n", "3", "--rate", "200mbit"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("host2        10.77.0.3"));
  EXPECT_EQ(namespaces("lab").size(), 4u);  // three hosts and the switch
  EXPECT_THAT(shoal(folder, {"lab", "list"}).out, HasSubstr("lab " + lab_name("lab") + "\n"));

  EXPECT_EQ(shoal(folder, {"lab", "down", lab_name("lab")}).status, 0);
  EXPECT_TRUE(namespaces("lab").empty());
  EXPECT_THAT(shoal(folder, {"lab", "list"}).out, Not(HasSubstr(lab_name("lab"))));
  const auto again = shoal(folder, {"lab", "down", lab_name("lab")});
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.out, "there is no lab " + lab_name("lab") + ": nothing to do\n");
}

TEST_F(LabTest, a_name_is_used_once) {
  ASSERT_EQ(up({"-n", "1", "--rate", "1gbit"}).status, 0);
  const auto second = up({"-n", "2", "--rate", "1gbit"});
  EXPECT_EQ(second.status, 2);
  EXPECT_EQ(second.err,
            "--name: lab " + lab_name("lab") + " exists already (shoal lab down " + lab_name("lab") + ")\n");
  EXPECT_EQ(namespaces("lab").size(), 2u);
}

// The other lab's name continues the first one's as a host's would.
TEST_F(LabTest, labs_whose_names_continue_each_other_stay_apart) {
  ASSERT_EQ(up({"-n", "2", "--rate", "1gbit"}, "lab").status, 0);
  ASSERT_EQ(up({"-n", "2", "--rate", "1gbit"}, "lab-1").status, 0);
  ASSERT_EQ(shoal(folder, {"lab", "down", lab_name("lab")}).status, 0);
  EXPECT_EQ(namespaces("lab-1").size(), 3u);
}

TEST_F(LabTest, links_are_shaped_at_both_ends) {
  folder.write("rates", "# my network\nalpha 1gbit 200mbit\nbeta 50mbit\n");
  ASSERT_EQ(up({"--rates", "rates"}).status, 0);
  const auto alpha = on("alpha", {"tc", "qdisc", "show", "dev", "c0"});
  EXPECT_THAT(alpha.out, HasSubstr("tbf"));
  EXPECT_THAT(alpha.out, HasSubstr("rate 1Gbit"));
  EXPECT_THAT(on("beta", {"tc", "qdisc", "show", "dev", "c0"}).out, HasSubstr("rate 50Mbit"));
  const std::string ends = run_tool({"tc", "-n", "shoal-" + lab_name("lab") + "-sw", "qdisc", "show"}).out;
  EXPECT_THAT(ends, ContainsRegex("tbf .* dev p0 root .*rate 200Mbit"));
  EXPECT_THAT(ends, ContainsRegex("tbf .* dev p1 root .*rate 50Mbit"));
  EXPECT_THAT(on("alpha", {"ip", "route"}).out, HasSubstr("congctl cubic"));
  EXPECT_THAT(on("alpha", {"ip", "link", "show", "c0"}).out, HasSubstr("mtu 1500"));
  EXPECT_EQ(on("1", {"hostname"}).out, "beta\n");
}

// Host 0's coordinator is reached by every member over the switch; bash opens the connection.
TEST_F(LabTest, members_run_on_their_hosts_and_reach_the_first) {
  ASSERT_EQ(up({"-n", "3", "--rate", "1gbit"}).status, 0);
  const auto run = shoal(folder, {"run", "-n", "3", "--lab", lab_name("lab"), "--", "bash", "-c",
                                  "exec 3<>/dev/tcp/${SHOAL_COORD%:*}/${SHOAL_COORD#*:} && hostname"});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* line : {"[0] host0\n", "[1] host1\n", "[2] host2\n"})
    EXPECT_THAT(run.out, HasSubstr(line));
  const auto more = shoal(folder, {"run", "-n", "4", "--lab", lab_name("lab"), "--", "true"});
  EXPECT_EQ(more.status, 2);
  EXPECT_EQ(more.err,
            "--lab: lab " + lab_name("lab") + " has 3 hosts for 4 members (-n 3, or a larger lab)\n");
}

TEST_F(LabTest, a_cut_cable_carries_nothing_until_it_is_healed) {
  ASSERT_EQ(up({"-n", "2", "--rate", "1gbit"}).status, 0);
  const auto port = [&] {
    return run_tool({"ip", "-n", "shoal-" + lab_name("lab") + "-sw", "link", "show", "p1"}).out;
  };
  EXPECT_THAT(port(), HasSubstr(",UP"));
  EXPECT_EQ(shoal(folder, {"lab", "cut", lab_name("lab"), "host1"}).status, 0);
  EXPECT_THAT(port(), Not(HasSubstr(",UP")));
  EXPECT_EQ(shoal(folder, {"lab", "heal", lab_name("lab"), "1"}).status, 0);
  EXPECT_THAT(port(), HasSubstr(",UP"));
  const auto missing = shoal(folder, {"lab", "cut", lab_name("lab"), "host7"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err, "lab " + lab_name("lab") + " has no host host7 (it has host0, host1)\n");
}

TEST_F(LabTest, a_link_gets_another_rate_at_both_ends_and_the_list_says_so) {
  ASSERT_EQ(up({"-n", "2", "--rate", "1gbit"}).status, 0);
  const auto buckets = [&] { return on("1", {"tc", "qdisc", "show", "dev", "c0"}).out + run_tool({"tc", "-n", "shoal-" + lab_name("lab") + "-sw", "qdisc", "show", "dev", "p1"}).out; };
  const auto slowed = shoal(folder, {"lab", "rate", lab_name("lab"), "host1", "50mbit"});
  ASSERT_EQ(slowed.status, 0) << slowed.err;
  EXPECT_THAT(buckets(), ContainsRegex("rate 50Mbit(.|\n)*rate 50Mbit"));
  EXPECT_EQ(shoal(folder, {"lab", "rate", lab_name("lab"), "1", "100mbit", "20mbit"}).status, 0);
  EXPECT_THAT(buckets(), ContainsRegex("rate 100Mbit(.|\n)*rate 20Mbit"));
  // Of this lab: others come and go beside it.
  const auto listed = [&] {
    const std::string all = shoal(folder, {"lab", "list"}).out;
    const auto from = all.find("lab " + lab_name("lab") + "\n");
    return from == std::string::npos ? all : all.substr(from, all.find("\nlab ", from) - from);
  };
  const std::string before = listed();
  EXPECT_THAT(before, ContainsRegex("host0 .* 1 Gbit/s +1 Gbit/s"));
  EXPECT_THAT(before, ContainsRegex("host1 .* 100 Mbit/s +20 Mbit/s"));
  const auto wrong = shoal(folder, {"lab", "rate", lab_name("lab"), "host1", "soon"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err, "rate: 'soon' is not a rate (for example 200mbit, 1gbit or 25MB/s)\n");
  EXPECT_EQ(shoal(folder, {"lab", "rate", lab_name("lab"), "host1", "1gbit", "1bit"}).err, "rate_down: a link of 1bit cannot be made (8kbit to 100gbit)\n");
  EXPECT_EQ(listed(), before);
}

TEST_F(LabTest, down_ends_what_still_runs_inside) {
  ASSERT_EQ(up({"-n", "1", "--rate", "1gbit"}).status, 0);
  Program inside(folder, {SHOAL_PROGRAM, "lab", "exec", lab_name("lab"), "0", "--", "sh", "-c",
                          "echo in; exec sleep 1000"});
  inside.lines(1);
  EXPECT_EQ(shoal(folder, {"lab", "down", lab_name("lab")}).status, 0);
  EXPECT_EQ(inside.wait().status, 143);
}

TEST(lab, the_bucket_never_splits_a_gso_packet) {
  EXPECT_EQ(bucket(125e6).burst, 500'000u);
  EXPECT_EQ(bucket(125e6).queue, 6'250'000u);
  EXPECT_EQ(bucket(125e6).rate_bits, 1'000'000'000u);
  EXPECT_EQ(bucket(125e3).burst, 131'072u);
  EXPECT_EQ(bucket(125e3).queue, 131'072u);
}

TEST(lab, mistakes_are_refused_in_one_line) {
  const Folder folder;
  folder.write("short", "host0 200mbit\nhost1\n");
  folder.write("twice", "a 1mbit\na 1mbit\n");
  folder.write("fast", "a 1mbit fast\n");
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"up", "--rate", "1gbit"}, "shoal lab up: how many hosts? (-n 4)\n"},
      {{"up", "-n", "2"}, "shoal lab up: which rate? (--rate 200mbit)\n"},
      {{"up", "-n", "2", "--rate", "soon"},
       "--rate: 'soon' is not a rate (for example 200mbit, 1gbit or 25MB/s)\n"},
      {{"up", "-n", "65", "--rate", "1gbit"}, "-n: a lab has 1 to 64 hosts, not 65\n"},
      {{"up", "-n", "2", "--rate", "1gbit", "--name", "A b"},
       "--name: 'A b' is no name for a lab (1 to 32 small letters, digits and dashes)\n"},
      {{"up", "--rates", "none"}, "none: cannot read: No such file or directory\n"},
      {{"up", "--rates", "short"},
       "short:2: a line is: host rate [rate_down] (for instance: host0 200mbit)\n"},
      {{"up", "--rates", "twice"}, "twice:2: host a is there twice\n"},
      {{"up", "--rates", "fast"}, "fast:1: 'fast' is not a rate (for example 200mbit, 1gbit or 25MB/s)\n"},
      {{"up", "-n", "3", "--rates", "twice"}, "twice:2: host a is there twice\n"},
      {{"exec", "nowhere", "host0", "--", "true"},
       "there is no lab nowhere (shoal lab list; shoal lab up -n 4 --name nowhere)\n"},
  };
  for (const auto& mistake : mistakes) {
    auto words = mistake.words;
    words.insert(words.begin(), "lab");
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.err, mistake.line);
    EXPECT_EQ(outcome.status, 2) << mistake.line;
  }
}

}  // namespace
}  // namespace shoal::app::test

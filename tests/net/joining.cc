// Joining: who is missing, who differs, who is a stranger. Every refusal is one line that says what to do.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "members.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/sockets.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

std::string why_not(Rank rank, Rank size, Rendezvous& board, const JoinOptions& options, const std::string& secret = "s") {
  try {
    join_tcp(place_of(rank, size), board, "t/", secret, options);
    return "joined";
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
}

TEST(Joining, missing_members_are_named) {
  Board board;
  JoinOptions options = quick();
  options.patience = 300ms;
  std::string said;
  each(2, [&](Rank rank) {
    const std::string line = why_not(rank == 0 ? 0 : 2, 4, board, options);
    if (rank == 0) said = line;
  });
  EXPECT_EQ(said, "timeout: join: ranks 1, 3 of 4 did not appear within 300 ms (start every member, or look at the log of those)");
}

TEST(Joining, another_setting_is_named_with_both_values_on_both_sides) {
  Board board;
  std::string said[2];
  each(2, [&](Rank rank) {
    JoinOptions options = quick();
    options.settings = {{"A", "same"}, {"TIMEOUT", rank == 0 ? "60 s" : "90 s"}};
    said[rank] = why_not(rank, 2, board, options);
  });
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const auto line = [&](const char* them, const char* theirs, const char* us, const char* ours) {
    return std::string("mismatch: join: ") + them + " (" + host + ") has " + theirs + ", " + us + " (" + host + ") has " + ours +
           " (it must be the same on all members)";
  };
  EXPECT_EQ(said[0], line("rank 1", "TIMEOUT 90 s", "rank 0", "TIMEOUT 60 s"));
  EXPECT_EQ(said[1], line("rank 0", "TIMEOUT 60 s", "rank 1", "TIMEOUT 90 s"));
}

TEST(Joining, a_setting_that_one_member_lacks_is_named) {
  Board board;
  std::string said[2];
  each(2, [&](Rank rank) {
    JoinOptions options = quick();
    if (rank == 1) options.settings = {{"CHECK", "1"}};
    said[rank] = why_not(rank, 2, board, options);
  });
  EXPECT_NE(said[0].find("has CHECK 1, rank 0 ("), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("has no CHECK ("), std::string::npos) << said[0];
}

TEST(Joining, another_size_is_refused) {
  Board board;
  std::string said[2];
  each(2, [&](Rank rank) { said[rank] = why_not(rank, rank == 0 ? 2 : 3, board, quick()); });
  EXPECT_NE(said[0].find("was started with size 3"), std::string::npos) << said[0];
}

// A board that shows of each card only some of the addresses.
class Narrow final : public Rendezvous {
 public:
  explicit Narrow(std::function<bool(const std::string& address)> shown) : shown_(std::move(shown)) {}
  void put(const std::string& key, const std::string& value) override {
    std::istringstream in(value);
    std::string rest;
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("at ", 0) != 0 || shown_(line.substr(3))) rest += line + "\n";
    }
    board_.put(key, rest);
  }
  std::string get(const std::string& key, Nanoseconds patience) override { return board_.get(key, patience); }

 private:
  std::function<bool(const std::string&)> shown_;
  Board board_;
};

bool has_ipv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_addr = in6addr_loopback;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0;
  if (fd >= 0) close(fd);
  return bound;
}

TEST(Joining, members_meet_over_ipv6_where_they_have_nothing_else) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  Narrow board([](const std::string& address) { return address.front() == '['; });
  std::vector<std::unique_ptr<Job>> jobs(3);
  each(3, [&](Rank rank) { jobs[rank] = join_tcp(place_of(rank, 3), board, "t/", "s", quick()); });
  for (Rank rank = 0; rank < 3; ++rank) {
    for (Rank other = 0; other < 3; ++other) {
      if (other == rank) continue;
      const std::string address = jobs[rank]->members()[other].address;
      EXPECT_EQ(address.rfind("[::1]:", 0), 0u) << address;
    }
  }
  leave_all(jobs);
}

TEST(Joining, an_ipv4_member_is_known_by_its_ipv4_address) {
  auto jobs = join_all(2);
  for (const Rank rank : {0u, 1u}) {
    const std::string address = jobs[rank]->members()[1 - rank].address;
    EXPECT_EQ(address.rfind("127.0.0.1:", 0), 0u) << address;
  }
  leave_all(jobs);
}

TEST(Joining, a_member_without_an_address_is_named) {
  Narrow board([](const std::string&) { return false; });
  std::string said;
  each(2, [&](Rank rank) {
    const std::string line = why_not(rank, 2, board, quick());
    if (rank == 1) said = line;
  });
  const std::string host = host_name();
  EXPECT_EQ(said, "invalid_argument: join: rank 0 (" + host + ") has no address that " + host +
                      " could reach (see `ip address` there: an interface must be up, with an address that is not link-local)");
}

TEST(Joining, two_jobs_at_once_do_not_meet) {
  std::vector<std::unique_ptr<Job>> first, second;
  each(2, [&](Rank which) { (which ? first : second) = join_all(3, quick(), which ? "one secret" : "another"); });
  for (auto* jobs : {&first, &second}) {
    std::byte out{1}, in{};
    Countdown done(2);
    Transport& a = (*jobs)[0]->transport();
    Transport& b = (*jobs)[2]->transport();
    a.post([&] {
      a.send(2, {1, 0}, {}, std::span(&out, 1), done.done());
      b.receive(0, {1, 0}, {}, std::span(&in, 1), done.done());
    });
    EXPECT_TRUE(done.wait(b));
    EXPECT_TRUE(done.failures().empty());
    EXPECT_EQ(in, out);
    leave_all(*jobs);
  }
}

TEST(Joining, members_know_each_other) {
  auto jobs = join_all(3);
  for (const auto& job : jobs) {
    ASSERT_EQ(job->members().size(), 3u);
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(job->members()[rank].id, jobs[0]->members()[rank].id);
      EXPECT_EQ(job->members()[rank].pid, static_cast<std::uint32_t>(getpid()));
      EXPECT_FALSE(job->members()[rank].address.empty());
    }
  }
  leave_all(jobs);
}

class Coordination : public testing::Test {
 protected:
  static int dial(const std::string& address) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
};

TEST_F(Coordination, a_value_reaches_who_waits_for_it) {
  Coordinator coordinator("s", "127.0.0.1:0");
  each(2, [&](Rank rank) {
    CoordinatorClient client("s", coordinator.address());
    if (rank == 0) {
      EXPECT_EQ(client.get("key", 10s), "value");
      EXPECT_EQ(client.get("empty", 10s), "");
    } else {
      client.put("key", "value");
      client.put("empty", "");
    }
  });
}

TEST_F(Coordination, may_be_at_an_ipv6_address) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  Coordinator coordinator("s", "[::1]:0");
  CoordinatorClient client("s", coordinator.address());
  client.put("key", "value");
  EXPECT_EQ(client.get("key", 10s), "value");
}

TEST_F(Coordination, a_missing_value_is_a_timeout_that_names_it) {
  Coordinator coordinator("s", "127.0.0.1:0");
  CoordinatorClient client("s", coordinator.address());
  try {
    client.get("member/3", 20ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::timeout);
    EXPECT_NE(std::string(error.what()).find("member/3"), std::string::npos);
  }
}

TEST_F(Coordination, a_taken_port_is_named) {
  Coordinator coordinator("s", "127.0.0.1:0");
  try {
    Coordinator second("s", coordinator.address());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_NE(std::string(error.what()).find(coordinator.address()), std::string::npos) << error.what();
  }
}

TEST_F(Coordination, without_a_secret_only_the_loopback_is_bound) {
  try {
    Coordinator open("", "0.0.0.0:0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "SHOAL_SECRET");
  }
}

TEST_F(Coordination, a_wrong_secret_is_refused) {
  Coordinator coordinator("s", "127.0.0.1:0");
  try {
    CoordinatorClient client("other", coordinator.address(), 200ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "SHOAL_COORD");
  }
  EXPECT_GE(coordinator.strangers(), 1u);
}

// Goal: strangers learn nothing and disturb nobody. Method: one sends garbage, one a short half of a hello and then
// nothing; both read until the end. Relation: not one byte comes back, and a member is served meanwhile.
TEST_F(Coordination, strangers_get_no_byte) {
  Coordinator coordinator("s", "127.0.0.1:0");
  const int garbage = dial(coordinator.address()), slow = dial(coordinator.address());
  const std::string noise(4096, 'x');
  ASSERT_GT(send(garbage, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
  ASSERT_GT(send(slow, "SHOAL", 5, MSG_NOSIGNAL), 0);
  CoordinatorClient client("s", coordinator.address());
  client.put("a", "b");
  EXPECT_EQ(client.get("a", 10s), "b");
  char byte = 0;
  EXPECT_LE(recv(garbage, &byte, 1, 0), 0);
  EXPECT_LE(recv(slow, &byte, 1, 0), 0);  // closed at the handshake's deadline
  close(garbage);
  close(slow);
  EXPECT_TRUE(client.get("a", 10s) == "b");
  EXPECT_EQ(coordinator.strangers(), 2u);
}

class Environment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"SHOAL_RANK", "SHOAL_SIZE", "SHOAL_COORD", "SHOAL_JOB", "SHOAL_GENERATION", "SHOAL_SECRET",
                             "SHOAL_SECRET_FILE", "RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"}) {
      unsetenv(name);
    }
  }
  static std::string complaint() {
    try {
      find_place();
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
  }
};

TEST_F(Environment, nothing_set_means_alone) {
  const Place place = find_place();
  EXPECT_EQ(place.launcher, Place::Launcher::alone);
  EXPECT_EQ(place.size, 1u);
}

TEST_F(Environment, shoal_goes_before_torchrun) {
  setenv("SHOAL_RANK", "1", 1);
  setenv("SHOAL_SIZE", "4", 1);
  setenv("SHOAL_COORD", "127.0.0.1:1", 1);
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  const Place place = find_place();
  EXPECT_EQ(place.launcher, Place::Launcher::shoal);
  EXPECT_EQ(place.rank, 1u);
  EXPECT_EQ(place.size, 4u);
}

TEST_F(Environment, torchrun_is_found) {
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("TORCHELASTIC_RESTART_COUNT", "3", 1);
  const Place place = find_place();
  EXPECT_EQ(place.launcher, Place::Launcher::torchrun);
  EXPECT_EQ(place.generation, 3u);
}

TEST_F(Environment, mistakes_are_named) {
  setenv("SHOAL_RANK", "1", 1);
  EXPECT_EQ(complaint(), "SHOAL_SIZE: not set, but SHOAL_RANK is (a launcher sets both; unset both to run alone)");
  setenv("SHOAL_SIZE", "four", 1);
  EXPECT_EQ(complaint(), "SHOAL_SIZE: \"four\" is not a number from 0 to 65536");
  setenv("SHOAL_SIZE", "1", 1);
  EXPECT_EQ(complaint(), "SHOAL_RANK: rank 1 is not below the size 1");
  setenv("SHOAL_SIZE", "2", 1);
  EXPECT_NE(complaint().find("SHOAL_COORD: not set"), std::string::npos);
}

TEST_F(Environment, an_open_secret_file_is_refused) {
  char path[] = "/tmp/shoal-secret-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(write(fd, "hush\n", 5), 5);
  fchmod(fd, 0644);
  close(fd);
  setenv("SHOAL_SECRET_FILE", path, 1);
  EXPECT_THROW(find_secret(), Error);
  chmod(path, 0600);
  EXPECT_EQ(find_secret(), "hush");
  unlink(path);
}

}  // namespace
}  // namespace shoal::net

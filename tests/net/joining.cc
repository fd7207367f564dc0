// Joining: who is missing, who differs, who is a stranger. Every refusal is one line that says what to do.
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "members.h"
#include "shoal/core/host.h"
#include "shoal/net/dial.h"
#include "shoal/net/reach.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

TEST(Joining, missing_members_are_named) {
  Board board;
  JoinOptions options = quick();
  options.patience = 300ms;
  std::string said;
  each(2, [&](Rank rank) {
    const std::string line = why_not(rank == 0 ? 0 : 2, 4, board, options);
    if (rank == 0) said = line;
  });
  EXPECT_EQ(said, "peer_lost: join: ranks 1, 3 of 4 did not appear within 300 ms (start every member, or look at the log of those)");
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

// All members say the same line.
TEST(Joining, roles_that_do_not_fit_are_refused_by_all) {
  const auto refusal = [](const std::vector<bool>& serves, bool takes_servers, OnPeerLost policy) {
    Board board;
    std::vector<std::string> said(serves.size());
    each(static_cast<Rank>(serves.size()), [&](Rank rank) {
      JoinOptions options = quick();
      options.serves = serves[rank];
      options.takes_servers = takes_servers;
      options.on_peer_lost = policy;
      said[rank] = why_not(rank, static_cast<Rank>(serves.size()), board, options);
    });
    for (const std::string& line : said) EXPECT_EQ(line, said[0]);
    return said[0];
  };
  EXPECT_EQ(refusal({true, true}, true, OnPeerLost::fail),
            "invalid_argument: SHOAL_ROLE: all 2 members are servers, and nobody trains (set it for the last ones alone)");
  EXPECT_EQ(refusal({false, true, true, false}, true, OnPeerLost::fail),
            "invalid_argument: SHOAL_ROLE: rank 1 is a server, and rank 3 behind it a worker (servers are the last ranks)");
  EXPECT_EQ(refusal({false, true}, false, OnPeerLost::fail),
            "unsupported: SHOAL_ROLE: this program has nothing to do for members that only serve (start all as workers; servers are for scripts "
            "with shoal.data_parallel() or shoal.Table)");
  EXPECT_EQ(refusal({false, true}, true, OnPeerLost::shrink),
            "unsupported: SHOAL_ON_PEER_LOST: where members only serve a run ends with the first that is lost (run with --on-peer-lost fail)");
}

TEST(Joining, who_serves_is_known_to_all) {
  Board board;
  std::vector<std::unique_ptr<Job>> jobs(3);
  each(3, [&](Rank rank) {
    JoinOptions options = quick();
    options.serves = rank > 0;
    options.takes_servers = true;
    jobs[rank] = join_tcp(place_of(rank, 3), board, "t/", "s", options);
  });
  for (const auto& job : jobs) EXPECT_EQ(workers_among(job->members()), 1u);
  leave_all(jobs);
}

TEST(Joining, another_secret_is_named_on_both_sides) {
  Board board;
  std::string said[2];
  each(2, [&](Rank rank) { said[rank] = why_not(rank, 2, board, quick(), rank == 0 ? "one" : "another"); });
  const std::string at = " (" + host_name() + ")";
  const std::string todo = " (set SHOAL_SECRET, or SHOAL_SECRET_FILE, to the same on all members)";
  EXPECT_EQ(said[0], "mismatch: SHOAL_SECRET: rank 1" + at + " and rank 0" + at + " have different secrets" + todo);
  EXPECT_EQ(said[1], "mismatch: SHOAL_SECRET: rank 0" + at + " and rank 1" + at + " have different secrets" + todo);
}

TEST(Joining, a_member_without_the_secret_is_named) {
  Board board;
  std::string said[2];
  each(2, [&](Rank rank) { said[rank] = why_not(rank, 2, board, quick(), rank == 0 ? "s" : ""); });
  const std::string line = "mismatch: SHOAL_SECRET: rank 1 (" + host_name() + ") has no secret and rank 0 (" + host_name() +
                           ") has one (set SHOAL_SECRET, or SHOAL_SECRET_FILE, to the same on all members)";
  EXPECT_EQ(said[0], line);
  EXPECT_EQ(said[1], line);
}

// Who comes when the others are complete is refused by them; they go on.
TEST(Joining, a_second_member_of_a_rank_is_refused_by_those_who_have_the_first) {
  Board board;
  std::vector<std::unique_ptr<Job>> jobs(3);
  each(3, [&](Rank rank) { jobs[rank] = join_tcp(place_of(rank, 3), board, "t/", "s", quick()); });
  const std::string said = why_not(2, 3, board, quick());
  EXPECT_EQ(said.rfind("mismatch: join: rank ", 0), 0u) << said;
  EXPECT_TRUE(said.ends_with(" has a member of rank 2 already (give every member a rank of its own)")) << said;
  for (const auto& job : jobs) EXPECT_EQ(job->transport().failure(), nullptr);
  leave_all(jobs);
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

TEST(Joining, addresses_that_are_of_no_use_are_named) {
  Card there, here;
  there.info.host = "a";
  there.info.boot = "of a";
  there.candidates = {*parse_endpoint("127.0.0.1:4000")};
  here.info.host = "b";
  here.info.boot = "of b";
  try {
    in_order(there, 3, here, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fact(), "rank 3 (a) has no address that b could reach, only 127.0.0.1:4000");
  }
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

// A range of as many ports as there are members, found free by binding them all at once.
TEST(Joining, members_listen_on_the_ports_they_may) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  constexpr int kMembers = 3;
  JoinOptions options = quick();
  for (std::uint16_t first = 21000; options.ports.first == 0 && first < 22000; first += kMembers) {
    std::vector<std::unique_ptr<Door>> doors;
    try {
      for (int i = 0; i < kMembers; ++i) {
        doors.push_back(std::make_unique<Door>(Endpoint(asio::ip::address_v6::any(), static_cast<std::uint16_t>(first + i)), Key{}));
      }
      options.ports = {first, static_cast<std::uint16_t>(first + kMembers - 1)};
    } catch (const Error&) {
    }
  }
  auto jobs = join_all(kMembers, options);
  std::set<std::string> ports;
  for (Rank rank = 0; rank < kMembers; ++rank) {
    const std::string address = jobs[0]->members()[rank].address;
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    EXPECT_GE(port, options.ports.first);
    EXPECT_LE(port, options.ports.last);
    ports.insert(address.substr(address.rfind(':')));
  }
  EXPECT_EQ(ports.size(), 3u);
  Board board;
  const std::string range = std::to_string(options.ports.first) + "-" + std::to_string(options.ports.last);
  EXPECT_EQ(why_not(0, 2, board, options),
            "invalid_argument: SHOAL_PORT_RANGE: none of the ports " + range + " is free (choose other ports, or a wider range)");
  leave_all(jobs);
}

TEST(Joining, an_interface_that_there_is_not_is_refused_with_those_there_are) {
  Board board;
  JoinOptions options = quick();
  options.interface = "no-such0";
  const std::string said = why_not(0, 2, board, options);
  const std::string begin = "invalid_argument: SHOAL_INTERFACE: " + host_name() + " has no interface no-such0 (those that are up: lo";
  EXPECT_EQ(said.rfind(begin, 0), 0u) << said;
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

}  // namespace
}  // namespace shoal::net

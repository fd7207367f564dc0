// Our own place to meet: values by key, and members that cannot meet are told why at once.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>

#include <cstdlib>
#include <thread>

#include "members.h"
#include "shoal/net/coordinator.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

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
  static std::string refusal(const std::string& secret, const std::string& address) {
    try {
      CoordinatorClient client(secret, address);
      return "served";
    } catch (const Error& error) {
      return std::string(name(error.code())) + ": " + error.what();
    }
  }
  // Of a member that joins by this coordinator.
  static std::string ending(const Coordinator& coordinator, Rank rank, Rank size, const std::string& secret) {
    try {
      CoordinatorClient client(secret, place_at(coordinator, rank, size));
      return why_not(rank, size, client, quick(), secret);
    } catch (const Error& error) {
      return std::string(name(error.code())) + ": " + error.what();
    }
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
    EXPECT_EQ(error.code(), Code::invalid_argument);
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

// Not after its patience: those words would be others.
TEST_F(Coordination, a_wrong_secret_is_refused) {
  Coordinator coordinator("s", "127.0.0.1:0");
  const std::string todo = " (set SHOAL_SECRET, or SHOAL_SECRET_FILE, to the same on all members)";
  EXPECT_EQ(refusal("other", coordinator.address()),
            "invalid_argument: SHOAL_SECRET: the coordinator at " + coordinator.address() + " refuses this member: it has another secret" + todo);
  EXPECT_EQ(refusal("", coordinator.address()), "invalid_argument: SHOAL_SECRET: the coordinator at " + coordinator.address() +
                                                    " refuses this member: the job has a secret and this member has none" + todo);
  EXPECT_GE(coordinator.strangers(), 2u);
}

TEST_F(Coordination, what_is_no_coordinator_is_named) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(listening, 8), 0);
  ASSERT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size), 0);
  std::thread server([&] {
    const std::string words = "HTTP/1.1 400 Bad Request\r\n\r\n";
    for (int client; (client = accept(listening, nullptr, nullptr)) >= 0; close(client)) {
      EXPECT_GT(send(client, words.data(), words.size(), MSG_NOSIGNAL), 0);
      shutdown(client, SHUT_WR);
      char rest[256];
      while (recv(client, rest, sizeof rest, 0) > 0) {
      }
    }
  });
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  EXPECT_EQ(refusal("s", address), "invalid_argument: SHOAL_COORD: what listens at " + address +
                                       " is no coordinator of Shoal (choose another port, or end what listens there)");
  shutdown(listening, SHUT_RDWR);
  server.join();
  close(listening);
}

TEST_F(Coordination, nobody_at_the_address_is_a_member_lost) {
  std::string address;
  { address = Coordinator("s", "127.0.0.1:0").address(); }
  try {
    CoordinatorClient client("s", address, 100ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::peer_lost);
    EXPECT_EQ(error.fact(), "no coordinator of this job answers at " + address);
  }
}

TEST_F(Coordination, a_rank_0_that_never_comes_is_named_where_it_would_hold_the_coordinator) {
  Place place = place_of(1, 2, "train");
  place.launcher = Place::Launcher::kubernetes;
  { place.coordinator = Coordinator("s", "127.0.0.1:0").address(); }
  try {
    CoordinatorClient client("s", place, 100ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::peer_lost);
    EXPECT_EQ(error.what(), "join: rank 0, which holds the coordinator, did not appear within 100 ms at " + place.coordinator +
                                " (is it running? check the address, and that this host can reach it; or look at its log)");
  }
}

// A run may be over before the one who was started in a lost member's place has come: its generation is new, the verdict is not.
TEST_F(Coordination, who_comes_after_all_was_given_up_hears_so) {
  Coordinator coordinator("s", "127.0.0.1:0");
  coordinator.give_up(Error(Code::peer_lost, "the run is over", "join"));
  Place late = place_at(coordinator, 1, 2);
  late.generation = 1;
  CoordinatorClient client("s", late);
  try {
    client.get("what nobody puts", 10s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the run is over"));
  }
}

// A name may stand for several addresses, and some of them be wrong: what is right is found.
TEST_F(Coordination, a_name_is_tried_at_all_that_it_stands_for) {
  Coordinator coordinator("s", "127.0.0.1:0");
  const std::string port = coordinator.address().substr(coordinator.address().rfind(':'));
  CoordinatorClient client("s", "127.0.0.9" + port + ",no-such-host.invalid" + port + ",localhost" + port);
  client.put("key", "value");
  EXPECT_EQ(client.get("key", 10s), "value");
}

TEST_F(Coordination, a_name_that_stands_for_a_wrong_address_is_told_with_it) {
  std::string port;
  {
    const std::string address = Coordinator("s", "127.0.0.1:0").address();
    port = address.substr(address.rfind(':'));
  }
  try {
    CoordinatorClient client("s", "localhost" + port, 100ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fact().rfind("no coordinator of this job answers at localhost" + port + " (", 0), 0u) << error.what();
    EXPECT_NE(error.fact().find("127.0.0.1" + port), std::string::npos) << error.what();
  }
}

// Goal: a member that cannot join ends the wait of all others long before their patience, in one line. Method: members of
// ranks 0 and 2 wait for rank 1, which comes with another secret, or twice. Relation: each says the same cause.
TEST_F(Coordination, a_member_with_another_secret_ends_the_wait_of_the_others) {
  Coordinator coordinator("s", "127.0.0.1:0");
  std::string said[3];
  each(3, [&](Rank rank) { said[rank] = ending(coordinator, rank, 3, rank == 1 ? "other" : "s"); });
  EXPECT_EQ(said[1].rfind("invalid_argument: SHOAL_SECRET: the coordinator at ", 0), 0u) << said[1];
  for (const Rank waiting : {0, 2}) {
    EXPECT_EQ(said[waiting], "mismatch: join: rank 1 at 127.0.0.1 was refused: it does not prove the secret of this job "
                             "(set SHOAL_SECRET, or SHOAL_SECRET_FILE, to the same on all members)");
  }
}

TEST_F(Coordination, a_stranger_who_claims_a_rank_does_not_keep_its_member_out) {
  Coordinator coordinator("s", "127.0.0.1:0");
  std::string said[2];
  EXPECT_NE(ending(coordinator, 1, 2, "other"), "joined");
  each(2, [&](Rank rank) { said[rank] = ending(coordinator, rank, 2, "s"); });
  EXPECT_EQ(said[0], "joined");
  EXPECT_EQ(said[1], "joined");
}

// Nor of one that is here already, nor of one that there is not: such claims end nobody's wait. Whoever waits has its patience,
// which is longer than a claim takes to be believed.
TEST_F(Coordination, a_stranger_who_claims_a_rank_that_is_here_or_that_there_is_not_is_no_cause) {
  Coordinator coordinator("s", "127.0.0.1:0", "shoal", 2);
  Place place = place_at(coordinator, 0, 2);
  CoordinatorClient waiting("s", place);
  for (const Rank claimed : {0u, 2u, 1'000'000u}) {
    place.rank = claimed;
    EXPECT_THROW(CoordinatorClient("other", place), Error);
  }
  try {
    waiting.get("member/1", 3500ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::timeout) << error.what();
  }
}

TEST_F(Coordination, what_is_certain_goes_before_what_strangers_claim) {
  Coordinator coordinator("s", "127.0.0.1:0");
  EXPECT_NE(ending(coordinator, 2, 3, "other"), "joined");
  const Place place = place_at(coordinator, 1, 3);
  CoordinatorClient first("s", place);
  EXPECT_THROW(CoordinatorClient("other", place), Error);
  CoordinatorClient second("s", place);
  for (CoordinatorClient* member : {&first, &second}) {
    try {
      member->get("member/2", 60s);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.fact(), "rank 1 was given twice: to a member at 127.0.0.1 and to one at 127.0.0.1");
    }
  }
}

TEST_F(Coordination, a_rank_given_twice_ends_all_with_one_line) {
  Coordinator coordinator("s", "127.0.0.1:0");
  std::string said[3];
  each(3, [&](Rank member) { said[member] = ending(coordinator, member == 0 ? 0 : 1, 3, "s"); });
  for (const std::string& line : said) {
    EXPECT_EQ(line, "mismatch: join: rank 1 was given twice: to a member at 127.0.0.1 and to one at 127.0.0.1 "
                    "(give every member a rank of its own)");
  }
}

TEST_F(Coordination, a_member_that_came_again_is_not_a_second_one) {
  Coordinator coordinator("s", "127.0.0.1:0");
  { CoordinatorClient gone("s", place_at(coordinator, 1, 2)); }
  std::string said[2];
  each(2, [&](Rank rank) { said[rank] = ending(coordinator, rank, 2, "s"); });
  EXPECT_EQ(said[0], "joined");
  EXPECT_EQ(said[1], "joined");
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

// Goal: a crowd at the door is not told that it has another secret. Method: as many silent connections as there may be handshakes,
// and one more. Relation: that one is not closed, and a member is served once the others have gone.
TEST_F(Coordination, a_full_door_lets_others_wait) {
  Coordinator coordinator("s", "127.0.0.1:0");
  std::vector<int> crowd;
  for (int i = 0; i < 256; ++i) crowd.push_back(dial(coordinator.address()));
  const int late = dial(coordinator.address());
  pollfd closed{late, POLLIN, 0};
  EXPECT_EQ(poll(&closed, 1, 300), 0);
  for (const int fd : crowd) close(fd);
  CoordinatorClient client("s", coordinator.address());
  client.put("a", "b");
  EXPECT_EQ(client.get("a", 10s), "b");
  close(late);
}

TEST_F(Coordination, a_coordinator_lost_with_rank_0_is_a_member_lost) {
  auto coordinator = std::make_unique<Coordinator>("s", "127.0.0.1:0");
  const std::string at = coordinator->address();
  CoordinatorClient member("s", place_at(*coordinator, 1, 2)), visitor("s", at);
  coordinator.reset();
  try {
    member.get("member/0", 60s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::peer_lost);
    EXPECT_EQ(error.fact(), "rank 0, which holds the coordinator at " + at + ", does not answer any more");
  }
  try {
    visitor.get("a", 60s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
  }
}

}  // namespace
}  // namespace shoal::net

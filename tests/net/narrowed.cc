// Some members of a transport as a transport of their own: ranks and channels are its own, and a loss among them ends it and not the one below.
#include "shoal/net/narrowed.h"

#include <gtest/gtest.h>

#include <string>

#include "shoal/net/inproc.h"

namespace shoal::net {
namespace {

constexpr std::uint16_t kNarrowedChannel = 64;
constexpr Tag kTag{operation_in(3, 5), 1};
const std::vector<Rank> kMembers{0, 2, 3};

// Four members, of which 0, 2 and 3 have a transport of their own.
struct Parties {
  explicit Parties(OnPeerLost on_peer_lost = OnPeerLost::shrink) : job(4, {.on_peer_lost = on_peer_lost}) {
    for (const Rank member : kMembers) narrowed.push_back(std::make_unique<Narrowed>(job.member(member), kMembers, kNarrowedChannel));
  }
  InprocJob job;
  std::vector<std::unique_ptr<Narrowed>> narrowed;
};

std::byte byte(int value) { return static_cast<std::byte>(value); }

// What was told to a handler, and how often.
struct Told {
  int times = 0;
  Failure why;
  Done done() {
    return [this](const Failure& failure) {
      ++times;
      why = failure;
    };
  }
};

TEST(Narrowed, its_ranks_and_channels_are_its_own) {
  Parties parties;
  EXPECT_EQ(parties.narrowed[1]->rank(), 1u);
  EXPECT_EQ(parties.narrowed[1]->size(), 3u);
  EXPECT_EQ(parties.narrowed[1]->host(2), parties.job.member(0).host(3));
  // The same tag in both, from the same member to the same member, and the bytes do not meet.
  const std::vector<std::byte> above{byte(1), byte(2)}, below{byte(3), byte(4)};
  std::vector<std::byte> got_above(2), got_below(2);
  Told told[4];
  parties.job.member(0).send(3, kTag, {}, below, told[0].done());
  parties.narrowed[0]->send(2, kTag, {}, above, told[1].done());
  parties.narrowed[2]->receive(0, kTag, {}, got_above, told[2].done());
  parties.job.member(3).receive(0, kTag, {}, got_below, told[3].done());
  EXPECT_TRUE(parties.job.run());
  EXPECT_EQ(got_above, above);
  EXPECT_EQ(got_below, below);
  for (const Told& one : told) EXPECT_TRUE(one.times == 1 && !one.why);
}

TEST(Narrowed, has_as_many_channels_as_its_maker_says) {
  InprocJob job(2);
  Narrowed narrowed(job.member(0), {0, 1}, kNarrowedChannel, 2), other(job.member(1), {0, 1}, kNarrowedChannel, 2);
  const std::vector<std::byte> sent{byte(7)};
  std::vector<std::byte> got(1);
  Told told[2];
  narrowed.send(1, {operation_in(1, 0), 0}, {}, sent, told[0].done());
  other.receive(0, {operation_in(1, 0), 0}, {}, got, told[1].done());
  EXPECT_TRUE(job.run());
  EXPECT_EQ(got, sent);
  EXPECT_THROW(narrowed.send(1, {operation_in(2, 0), 0}, {}, sent, {}), Error);
}

TEST(Narrowed, a_loss_among_its_members_ends_it_alone) {
  Parties parties;
  std::vector<std::byte> into(1), got(1);
  Told waiting, told, later, sent, received;
  parties.narrowed[0]->receive(1, kTag, {}, into, waiting.done());  // of who lives, and will not send
  parties.narrowed[0]->on_failure(told.done());
  parties.job.kill(3);
  EXPECT_TRUE(parties.job.run());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(parties.narrowed[i]->failure());
    EXPECT_EQ(parties.narrowed[i]->failure()->code(), Code::peer_lost);
    EXPECT_FALSE(parties.job.member(kMembers[i]).failure());
  }
  for (const Told& one : {waiting, told}) EXPECT_TRUE(one.times == 1 && one.why == parties.narrowed[0]->failure());
  parties.narrowed[0]->send(1, {operation_in(3, 6), 0}, {}, into, later.done());
  // Those who are left have another one; late bytes of the first are not in it.
  constexpr std::uint16_t next = kNarrowedChannel + Narrowed::kChannels;
  Narrowed first(parties.job.member(0), {0, 2}, next), second(parties.job.member(2), {0, 2}, next);
  const std::vector<std::byte> bytes{byte(7)};
  first.send(1, kTag, {}, bytes, sent.done());
  second.receive(0, kTag, {}, got, received.done());
  EXPECT_TRUE(parties.job.run());
  EXPECT_TRUE(later.times == 1 && later.why);
  EXPECT_TRUE(sent.times == 1 && !sent.why && received.times == 1 && !received.why);
  EXPECT_EQ(got, bytes);
}

TEST(Narrowed, another_members_loss_is_nothing_to_it) {
  Parties parties;
  const std::vector<std::byte> bytes{byte(7)};
  std::vector<std::byte> got(1);
  Told sent, received;
  parties.job.kill(1);
  EXPECT_TRUE(parties.job.run());
  parties.narrowed[0]->send(1, kTag, {}, bytes, sent.done());
  parties.narrowed[1]->receive(0, kTag, {}, got, received.done());
  EXPECT_TRUE(parties.job.run());
  EXPECT_TRUE(received.times == 1 && !received.why);
  EXPECT_FALSE(parties.narrowed[0]->failure());
}

TEST(Narrowed, who_gives_up_ends_all_and_who_was_told_of_a_loss_nothing_below) {
  Parties parties;
  parties.narrowed[2]->fail(Error(Code::peer_lost, "somebody was lost"));
  EXPECT_TRUE(parties.job.run());
  EXPECT_TRUE(parties.narrowed[2]->failure());
  EXPECT_FALSE(parties.narrowed[0]->failure());
  parties.narrowed[1]->fail(Error(Code::mismatch, "other files"));
  EXPECT_TRUE(parties.job.run());
  for (const Rank member : {0u, 1u, 3u}) {
    ASSERT_TRUE(parties.job.member(member).failure());
    EXPECT_NE(std::string(parties.job.member(member).failure()->what()).find("other files"), std::string::npos);
  }
  EXPECT_TRUE(parties.narrowed[0]->failure());
}

TEST(Narrowed, what_is_open_when_it_goes_has_ended) {
  Parties parties;
  std::vector<std::byte> into(1);
  Told waiting;
  parties.narrowed[0]->receive(1, kTag, {}, into, waiting.done());
  parties.narrowed.clear();
  ASSERT_EQ(waiting.times, 1);
  EXPECT_EQ(waiting.why->code(), Code::cancelled);
}

}  // namespace
}  // namespace shoal::net

// Goal: messages find their receives by tag and in the order they were sent, from one member or from any; what does not come,
// is not taken or has another size ends with a line that says so. Method: members on a scripted network.
#include <gmock/gmock.h>

#include "tests/nn/scripted_members.h"

namespace shoal::nn {
namespace {

using testing::Each;
using testing::ElementsAre;
using Numbers = std::vector<std::int32_t>;

// Sizes: urgent, and beyond what leaves unasked, so that both ways of sending are met.
TEST(Points, messages_of_one_tag_arrive_in_the_order_sent) {
  for (const std::size_t count : {1u, 30'000u}) {
    for (const bool receives_first : {false, true}) {
      ScriptedMembers members(2, {.seed = count});
      std::vector<Numbers> sent(5), got(5, Numbers(count));
      for (std::int32_t i = 0; i < 5; ++i) sent[i] = counting(count, 100 * i);
      const auto send_all = [&] {
        for (Numbers& values : sent) members.send(0, 1, 3, values);
      };
      if (!receives_first) send_all();
      members.pass(1s);
      for (Numbers& values : got) members.receive(1, 0, 3, values);
      members.pass(1s);
      if (receives_first) send_all();
      EXPECT_THAT(members.run(), Each("done"));
      EXPECT_EQ(got, sent);
    }
  }
}

TEST(Points, a_message_overtakes_those_of_other_tags) {
  ScriptedMembers members(2);
  Numbers large = counting(50'000), small = {7}, got_large(50'000), got_small(1);
  members.send(0, 1, 1, large);
  members.send(0, 1, 2, small);
  const Outcome& second = members.receive(1, 0, 2, got_small);
  members.pass(1s);
  EXPECT_EQ(second.line(), "done");
  EXPECT_EQ(got_small, small);
  members.receive(1, 0, 1, got_large);
  EXPECT_THAT(members.run(), Each("done"));
  EXPECT_EQ(got_large, large);
}

TEST(Points, a_message_without_bytes_is_a_message) {
  ScriptedMembers members(2);
  Numbers nothing, into;
  members.send(0, 1, 0, nothing);
  members.receive(1, 0, 0, into);
  EXPECT_THAT(members.run(), Each("done"));
}

// Whoever comes first; each message goes to one receive, and the receive learns from whom.
TEST(Points, any_source_takes_the_first_and_says_whose_it_was) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ScriptedMembers members(4, {.seed = seed});
    std::vector<Numbers> sent(4), got(3, Numbers(500));
    std::vector<Outcome*> outcomes;
    for (std::size_t i = 0; i < 3; ++i) outcomes.push_back(&members.receive(0, std::nullopt, 9, got[i]));
    for (net::Rank rank = 1; rank < 4; ++rank) {
      sent[rank] = counting(500, static_cast<std::int32_t>(1000 * rank));
      members.job.at(std::chrono::milliseconds((rank + seed) % 3), [&, rank] { members.send(rank, 0, 9, sent[rank]); });
    }
    EXPECT_THAT(members.run(), Each("done"));
    std::vector<net::Rank> sources;
    for (std::size_t i = 0; i < 3; ++i) {
      sources.push_back(outcomes[i]->source);
      EXPECT_EQ(got[i], sent[outcomes[i]->source]);
    }
    EXPECT_EQ(sources.front(), seed % 3 == 0 ? 3 : seed % 3 == 1 ? 2 : 1) << "the one sent a millisecond earlier";
    EXPECT_THAT(sources, testing::UnorderedElementsAre(1, 2, 3));
  }
}

TEST(Points, a_named_source_leaves_the_messages_of_others_alone) {
  ScriptedMembers members(3);
  Numbers one = {1}, two = {2}, got_two(1), got_any(1);
  members.send(1, 0, 4, one);
  members.pass(1s);
  members.send(2, 0, 4, two);
  members.receive(0, 2, 4, got_two);
  members.receive(0, std::nullopt, 4, got_any);
  EXPECT_THAT(members.run(), Each("done"));
  EXPECT_THAT(got_two, ElementsAre(2));
  EXPECT_THAT(got_any, ElementsAre(1));
}

// More than may leave unasked: the rest waits at the sender until the receiver has asked, and none is lost.
TEST(Points, messages_that_nobody_asks_for_wait_at_their_sender) {
  constexpr std::size_t kMessages = 3 * Points::kEager;
  ScriptedMembers members(2);
  std::vector<Numbers> sent(kMessages), got(kMessages, Numbers(1));
  std::vector<Outcome*> sends;
  for (std::size_t i = 0; i < kMessages; ++i) {
    sent[i] = {static_cast<std::int32_t>(i)};
    sends.push_back(&members.send(0, 1, 0, sent[i], 3600s));
  }
  members.pass(1s);
  const auto left = std::count_if(sends.begin(), sends.end(), [](const Outcome* send) { return send->ended > 0; });
  EXPECT_EQ(left, static_cast<std::ptrdiff_t>(Points::kEager));
  for (Numbers& values : got) members.receive(1, 0, 0, values);
  EXPECT_THAT(members.run(), Each("done"));
  EXPECT_EQ(got, sent);
  // What was taken is acknowledged: messages leave unasked again.
  Numbers more = {1};
  const Outcome& another = members.send(0, 1, 0, more);
  members.job.run([&] { return another.ended > 0; });
  EXPECT_EQ(another.line(), "done");
}

TEST(Points, another_size_is_refused_on_both_sides) {
  ScriptedMembers members(2);
  std::vector<Numbers> eager(Points::kEager, Numbers(1));
  for (Numbers& values : eager) members.send(0, 1, 1, values);  // what follows waits for its receive
  Numbers sent(5), got(3), other(5);
  const Outcome& send = members.send(0, 1, 2, sent);
  const Outcome& receive = members.receive(1, 0, 2, got);
  members.job.run([&] { return send.ended + receive.ended == 2; });
  EXPECT_EQ(receive.line(), "recv from rank 0 (tag 2): rank 0 sent 20 bytes and this member receives 12");
  EXPECT_EQ(send.line(), "send to rank 1 (tag 2): the message has 20 bytes and rank 1 receives 12");
  for (Numbers& values : eager) members.receive(1, 0, 1, values);
  members.send(0, 1, 2, other);
  const Outcome& next = members.receive(1, 0, 2, sent);
  members.run();
  EXPECT_EQ(next.line(), "done") << "a refused message takes no later one with it";
}

TEST(Points, deadlines_say_what_did_not_happen) {
  ScriptedMembers members(3);
  Numbers one(1), large(100'000), any(1), part(100'000);
  members.receive(0, 1, 5, one, 2s);
  members.receive(0, std::nullopt, 6, any, 300ms);
  members.send(0, 2, 7, large, 4s);  // more than leaves unasked, and rank 2 does not ask
  EXPECT_THAT(members.run(), ElementsAre("recv from rank 1 (tag 5): rank 1 has not sent such a message within 2 s",
                                         "recv from any rank (tag 6): nobody has sent such a message within 300 ms",
                                         "send to rank 2 (tag 7): rank 2 has not taken the message within 4 s"));
  // Rank 2 takes it after its sender has given up: it waits no longer than it wants to.
  Outcome& late = members.receive(2, 0, 7, part, 1s);
  members.run();
  EXPECT_EQ(late.line(), "recv from rank 0 (tag 7): the message has not arrived whole within 1 s");
}

// Collectives and messages share links, not their meaning.
TEST(Points, messages_and_collectives_do_not_touch_each_other) {
  ScriptedMembers members(2);
  std::vector<Numbers> sums(2, counting(20'000));
  Numbers sent = counting(20'000, 3), got(20'000);
  members.send(0, 1, 0, sent);
  for (net::Rank rank : {0u, 1u}) members.start(rank, all_reduce(sums[rank]));
  members.receive(1, 0, 0, got);
  EXPECT_THAT(members.run(), Each("done"));
  EXPECT_EQ(got, sent);
  EXPECT_EQ(sums[0][19'999], 2 * 19'999);
  EXPECT_EQ(sums[0], sums[1]);
}

}  // namespace
}  // namespace shoal::nn

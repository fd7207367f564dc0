// Goal: nothing that a group has open waits for ever, and its end is one line that names who or what: a member that stays
// away, is lost, cut off or frozen, an abort, a close. Method: members on a scripted network, whose clock only moves when
// nothing else can happen.
#include <gmock/gmock.h>

#include "tests/nn/scripted_members.h"

namespace shoal::nn {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<std::int32_t>;

TEST(GroupEnds, a_deadline_names_the_members_that_stay_away) {
  for (const bool check : {false, true}) {
    ScriptedMembers members(4, {}, {.check = check});
    std::vector<Numbers> values(4, Numbers(100));
    for (net::Rank rank : {0u, 2u}) members.start(rank, all_reduce(values[rank]), 5s);
    EXPECT_THAT(members.run(), Each("operation 1, all_reduce of 100 i32 (sum): not done within 5 s: ranks 1, 3 have not entered it"));
    EXPECT_EQ(members.took() / 1s, 5);
  }
}

// All are in it, but the bytes of one do not come: then the deadline says from whom.
TEST(GroupEnds, a_deadline_names_whose_bytes_are_missing) {
  ScriptedMembers members(2, {.rate = 10'000});  // the sum takes minutes
  std::vector<Numbers> values(2, Numbers(1'000'000));
  for (net::Rank rank : {0u, 1u}) members.start(rank, all_reduce(values[rank]), 30s);
  const auto lines = members.run();
  EXPECT_THAT(lines[0], AllOf(HasSubstr("not done within 30 s; waiting for operation 1"), HasSubstr("from rank 1")));
  EXPECT_THAT(lines[1], HasSubstr("from rank 0"));
}

// A deadline ends one operation of one member, not the group.
TEST(GroupEnds, after_a_deadline_the_next_collective_works) {
  ScriptedMembers members(2);
  std::vector<Numbers> values(2, Numbers(10, 1));
  Numbers late(100'000), unused(100'000);  // more than leaves before the receiver has asked
  const Outcome& first = members.start(0, all_reduce(late), 2s);
  members.run();
  EXPECT_THAT(first.line(), HasSubstr("rank 1 has not entered it"));
  const Outcome& missed = members.start(1, all_reduce(unused), 2s);
  std::vector<Outcome*> second;
  for (net::Rank rank : {0u, 1u}) second.push_back(&members.start(rank, all_reduce(values[rank])));
  members.run();
  EXPECT_THAT(missed.line(), HasSubstr("not done within 2 s"));
  EXPECT_EQ(second[0]->line(), "done");
  EXPECT_EQ(second[1]->line(), "done");
  EXPECT_EQ(values, std::vector<Numbers>(2, Numbers(10, 2)));
}

// Something of every kind is open at every survivor; whatever happens to rank 1, it ends once and names it.
class Open {
 public:
  explicit Open(std::uint64_t seed) : members_(3, {.seed = seed}) {
    for (net::Rank rank : {0u, 2u}) {
      const net::Rank other = 2 - rank;
      members_.start(rank, all_reduce(values_[rank]));
      members_.start(rank, barrier(token_[rank]));
      members_.receive(rank, 1, 1, got_[rank]);
      members_.receive(rank, std::nullopt, 2, got_any_[rank]);
      members_.send(rank, other, 3, large_[rank]);
      members_.monitored_barrier(rank);
    }
    members_[1].start(all_reduce(values_[1]), 60s, [](const net::Failure&) {});  // nobody asks a lost member
  }
  std::vector<std::string> survivors() { return members_.run(); }
  ScriptedMembers& members() { return members_; }

 private:
  std::vector<Numbers> values_ = std::vector<Numbers>(3, Numbers(500'000)), token_ = std::vector<Numbers>(3, Numbers(1)),
                       got_ = token_, got_any_ = token_, large_ = values_;
  ScriptedMembers members_;
};

TEST(GroupEnds, a_lost_member_ends_all_that_waits_and_is_named) {
  for (std::uint64_t moment = 0; moment < 20; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    Open open(moment + 1);
    open.members().job.at(std::chrono::microseconds(400 * moment), [&] { open.members().kill(1); });
    EXPECT_THAT(open.survivors(), Each(AllOf(HasSubstr("rank 1"), HasSubstr("was lost: connection closed"))));
    EXPECT_LT(open.members().took(), 1s);
  }
}

TEST(GroupEnds, a_frozen_member_ends_all_that_waits_and_is_named) {
  Open open(1);
  open.members().job.at(1ms, [&] { open.members().freeze(1); });
  EXPECT_THAT(open.survivors(), Each(AllOf(HasSubstr("rank 1"), HasSubstr("not heard for 5 s"))));
  EXPECT_LT(open.members().took(), 6s);
}

TEST(GroupEnds, a_link_that_vanishes_ends_every_member) {
  Open open(1);
  open.members().job.at(1ms, [&] { open.members().job.cut(0, 1); });
  EXPECT_THAT(open.survivors(), Each(HasSubstr("not heard for 5 s")));
  EXPECT_LT(open.members().took(), 6s);
}

TEST(GroupEnds, an_abort_ends_every_member_with_its_words) {
  for (const net::Rank who : {0u, 1u, 2u}) {
    Open open(1);
    open.members().job.at(1ms, [&] { open.members()[who].abort(Error(Code::cancelled, "rank x has had enough")); });
    EXPECT_THAT(open.survivors(), Each(HasSubstr("rank x has had enough"))) << "rank " << who;
    EXPECT_LT(open.members().took(), 1s);
  }
}

TEST(GroupEnds, close_ends_what_is_open_here_and_refuses_what_comes) {
  ScriptedMembers members(2);
  Numbers values(10), got(10);
  members.start(0, all_reduce(values));
  members.receive(0, 1, 1, got);
  members.monitored_barrier(0);
  members.pass(1ms);
  members[0].close();
  EXPECT_THAT(members.run(), Each("the process group was destroyed"));
  try {
    members[0].start(all_reduce(values), 1s, [](const net::Failure&) {});
    FAIL() << "a closed group took a collective";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the process group was destroyed");
  }
  EXPECT_FALSE(members[0].post([] {}));
}

// Another thread's call has found the group open, and before it reaches the loop the group is closed.
TEST(GroupEnds, a_call_that_a_close_overtakes_ends_too) {
  Numbers values(10);
  using Call = std::function<void(Group&, Outcome&)>;
  const std::vector<Call> calls = {
      [&](Group& group, Outcome& end) { group.start(all_reduce(values), 60s, end.done()); },
      [&](Group& group, Outcome& end) { group.send(1, 1, bytes_of(values), 60s, end.done()); },
      [&](Group& group, Outcome& end) { group.receive(1, 1, bytes_of(values), 60s, end.received()); },
      [&](Group& group, Outcome& end) { group.monitored_barrier(60s, true, end.done()); },
  };
  for (const Call& call : calls) {
    Outcome outcome;
    net::InprocJob network(2);
    auto job = std::make_unique<ScriptedJob>(network.member(0));
    auto& asked = job->asked;
    Group group(std::move(job), {});
    asked = [&] { group.close(); };
    call(group, outcome);
    network.run();
    EXPECT_EQ(outcome.line(), "the process group was destroyed");
  }
}

TEST(GroupEnds, a_monitored_barrier_lets_everybody_go) {
  ScriptedMembers members(4);
  for (net::Rank rank = 0; rank < 4; ++rank) {
    members.job.at(std::chrono::milliseconds(rank * 3 % 4), [&, rank] { members.monitored_barrier(rank); });
  }
  EXPECT_THAT(members.run(), Each("done"));
}

TEST(GroupEnds, a_monitored_barrier_names_who_is_missing) {
  for (const bool all_missing : {true, false}) {
    ScriptedMembers members(4);
    members.monitored_barrier(0, 2s, all_missing);
    members.monitored_barrier(2, 3s, all_missing);
    EXPECT_THAT(members.run(), ElementsAre(all_missing ? "monitored_barrier: ranks 1, 3 have not come within 2 s"
                                                       : "monitored_barrier: rank 1 has not come within 2 s",
                                           "monitored_barrier: rank 0 has not let this member go on within 3 s"));
  }
}

// Whoever let the others go may leave at once: they still hear of it.
TEST(GroupEnds, rank_0_may_leave_right_after_a_monitored_barrier) {
  ScriptedMembers members(5);
  std::vector<Outcome*> outcomes;
  for (net::Rank rank = 0; rank < 5; ++rank) outcomes.push_back(&members.monitored_barrier(rank));
  ASSERT_TRUE(members.job.run([&] { return outcomes[0]->ended == 1; }));
  members.leave(0);
  members.job.kill(0);
  EXPECT_THAT(members.run(), Each("done"));
}

}  // namespace
}  // namespace shoal::nn

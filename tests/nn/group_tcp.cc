// The same group over real sockets, with callers on threads of their own, as PyTorch's are.
#include <gmock/gmock.h>

#include "tests/net/members.h"
#include "tests/nn/calls.h"

namespace shoal::nn {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using Numbers = std::vector<std::int32_t>;

constexpr net::Rank kSize = 3;

// One operation from a caller's thread: started, waited for, its line read once nobody writes it any more.
template <class Start>
std::string finished(Group& group, Start start) {
  auto outcome = std::make_shared<Outcome>();
  auto ended = std::make_shared<std::atomic<bool>>(false);
  const auto done = [outcome, ended](const net::Failure& why, net::Rank source = 0) {
    outcome->received()(why, source);
    *ended = true;
  };
  try {
    start(done);
    return group.wait([&] { return ended->load(); }, 30s) ? outcome->line() : "open";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string collective(Group& group, const Collect& what, Nanoseconds patience = 30s) {
  return finished(group, [&](auto done) { group.start(what, patience, [done](const net::Failure& why) { done(why); }); });
}

// body(group, lines) as every member; lines[rank] is what body returned.
std::vector<std::string> on_every_member(const std::function<std::string(Group&)>& body, Group::Settings settings = {}) {
  net::Board board;
  std::vector<std::string> lines(kSize);
  net::each(kSize, [&](net::Rank rank) {
    try {
      Group group(net::join_tcp(net::place_of(rank, kSize), board, "t/", "s", net::quick()), settings);
      lines[rank] = body(group);
    } catch (const Error& error) {
      lines[rank] = std::string("not joined: ") + error.what();
    }
  });
  return lines;
}

TEST(GroupTcp, collectives_and_messages_give_every_member_its_own) {
  for (const bool check : {false, true}) {
    EXPECT_THAT(on_every_member(
                    [](Group& group) -> std::string {
                      const auto own = static_cast<std::int32_t>(group.rank());
                      for (const std::size_t count : {0u, 1u, 900u, 300'000u}) {
                        Numbers values(count, own), sent(count, own), got(count);
                        if (const auto line = collective(group, all_reduce(values)); line != "done") return line;
                        if (values != Numbers(count, 0 + 1 + 2)) return "another sum";
                        const net::Rank next = (group.rank() + 1) % kSize, last = (group.rank() + kSize - 1) % kSize;
                        std::atomic<bool> handed_over = false;
                        group.send(next, 1, bytes_of(sent), 30s, [&](const net::Failure&) { handed_over = true; });
                        const auto line = finished(group, [&](auto done) { group.receive(last, 1, bytes_of(got), 30s, done); });
                        group.wait([&] { return handed_over.load(); }, 30s);
                        if (line != "done") return line;
                        if (got != Numbers(count, static_cast<std::int32_t>(last))) return "another message";
                      }
                      return "done";
                    },
                    {.check = check}),
                Each("done"));
  }
}

// Members end as soon as they know, and leave at once: still everybody reads the same line.
TEST(GroupTcp, members_in_different_collectives_read_the_same_line) {
  for (const bool check : {true, false}) {
    const auto lines = on_every_member(
        [](Group& group) {
          Numbers values(group.rank() == 1 ? 50'000 : 100'000);
          return collective(group, all_reduce(values));
        },
        {.check = check});
    EXPECT_THAT(lines, Each(AllOf(lines[0], HasSubstr("operation 1: "), HasSubstr("rank 1 calls all_reduce of 50000 i32 (sum)"))));
  }
}

TEST(GroupTcp, a_deadline_names_the_member_that_stays_away) {
  std::atomic<int> ended = 0;
  const auto lines = on_every_member([&](Group& group) -> std::string {
    Numbers values(100);
    if (group.rank() != 2) {
      const std::string line = collective(group, all_reduce(values), 500ms);
      ++ended;
      return line;
    }
    group.wait([&] { return ended == 2; }, 30s);
    return "away";
  });
  EXPECT_THAT(lines, testing::ElementsAre(Each(testing::_), Each(testing::_), "away"));
  for (const net::Rank rank : {0u, 1u}) {
    EXPECT_EQ(lines[rank], "operation 1, all_reduce of 100 i32 (sum): not done within 500 ms: rank 2 has not entered it");
  }
}

// One thread waits in a collective, another of the same member ends the group.
TEST(GroupTcp, an_abort_from_another_thread_ends_every_member) {
  EXPECT_THAT(on_every_member([](Group& group) {
                Numbers values(100'000), all_are_here(1);
                if (const auto line = collective(group, barrier(all_are_here)); line != "done") return line;
                if (group.rank() != 0) return collective(group, all_reduce(values));
                std::thread other([&] { group.abort(Error(Code::cancelled, "rank 0 aborted the process group")); });
                Numbers got(1);
                const std::string line = finished(group, [&](auto done) { group.receive(1, 0, bytes_of(got), 30s, done); });
                other.join();
                return line;
              }),
              Each(HasSubstr("rank 0 aborted the process group")));
}

// One thread waits in a collective while another of the same member destroys the group. The others stay until it has ended:
// whoever leaves first is told to those who wait.
TEST(GroupTcp, a_close_ends_what_another_thread_waits_for) {
  std::atomic<bool> ended = false;
  const auto lines = on_every_member([&](Group& group) -> std::string {
    Numbers values(100'000);
    if (group.rank() != 0) {
      group.wait([&] { return ended.load(); }, 30s);
      return "stayed";
    }
    std::thread other([&] { group.close(); });
    const std::string line = collective(group, all_reduce(values));
    other.join();
    ended = true;
    return line;
  });
  EXPECT_THAT(lines, testing::ElementsAre("the process group was destroyed", "stayed", "stayed"));
}

TEST(GroupTcp, rank_0_may_leave_right_after_a_monitored_barrier) {
  for (int round = 0; round < 5; ++round) {
    EXPECT_THAT(on_every_member([](Group& group) {
                  return finished(group, [&](auto done) {
                    group.monitored_barrier(30s, true, [done](const net::Failure& why) { done(why); });
                  });
                }),
                Each("done"));
  }
}

}  // namespace
}  // namespace shoal::nn

// Where a job goes on without members that are lost: all that go on agree who is gone, what they wait for from it fails, and everything
// between them goes its way.
#include "shoal/net/losses.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>
#include <set>

#include "forked.h"
#include "own_connections.h"
#include "shoal/net/inproc.h"

namespace shoal::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Instant second(int s) { return Instant{} + std::chrono::seconds(s); }

// --- who goes

std::vector<Rank> gone(Rank size, const std::vector<std::pair<Rank, Rank>>& links) {
  Losses losses(size, 1s);
  for (const auto& [a, b] : links) losses.silent(a, b, second(0));
  EXPECT_THAT(losses.conclude(second(0)), IsEmpty()) << "others may have more to tell";
  return losses.conclude(second(1));
}

TEST(Losses, the_member_with_the_most_silent_links_goes) {
  EXPECT_THAT(gone(4, {{0, 1}, {2, 0}, {3, 0}}), ElementsAre(0));
  EXPECT_THAT(gone(4, {{2, 1}}), ElementsAre(2)) << "of two ends the higher rank";
  EXPECT_THAT(gone(2, {{1, 0}}), ElementsAre(1));
  EXPECT_THAT(gone(4, {}), IsEmpty());
}

TEST(Losses, of_two_parts_the_smaller_goes) {
  EXPECT_THAT(gone(5, {{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}}), ElementsAre(1, 0));
  EXPECT_THAT(gone(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}), ElementsAre(3, 2)) << "equal parts: that of the highest rank";
}

TEST(Losses, a_member_that_is_lost_for_certain_explains_its_silent_links) {
  Losses losses(3, 1s);
  losses.silent(0, 1, second(0));
  EXPECT_TRUE(losses.lose(0));
  EXPECT_FALSE(losses.lose(0));
  EXPECT_THAT(losses.conclude(second(1)), IsEmpty());
  losses.silent(0, 2, second(2));
  EXPECT_EQ(losses.due(), std::nullopt);
}

// --- on the scripted network

struct Scripted {
  explicit Scripted(Rank size, std::uint64_t seed = 1) : job(size, {.seed = seed, .on_peer_lost = OnPeerLost::shrink}), heard(size) {
    for (Rank rank = 0; rank < size; ++rank) {
      job.member(rank).on_lost([this, rank](Rank lost, const Failure& why) {
        EXPECT_TRUE(heard[rank].insert(lost).second) << "told twice";
        EXPECT_THAT(why->what(), HasSubstr("rank " + std::to_string(lost) + " (member"));
      });
    }
  }
  // Members that go on, each of which has heard of all others and can reach all others.
  std::vector<Rank> survivors(const std::set<Rank>& stopped = {}) {
    std::vector<Rank> alive;
    for (Rank rank = 0; rank < heard.size(); ++rank) {
      if (!stopped.contains(rank) && !job.member(rank).failure()) alive.push_back(rank);
    }
    for (const Rank rank : alive) {
      EXPECT_EQ(heard[rank].size() + alive.size(), heard.size()) << "as rank " << rank << " sees it";
      for (const Rank lost : heard[rank]) EXPECT_THAT(alive, testing::Not(testing::Contains(lost)));
    }
    std::size_t arrived = 0;
    std::byte out{}, in{};
    for (const Rank from : alive) {
      for (const Rank to : alive) {
        if (from == to) continue;
        job.member(from).send(to, {77, 0}, {}, {&out, 1}, [](const Failure& why) { EXPECT_FALSE(why); });
        job.member(to).receive(from, {77, 0}, {}, {&in, 1}, [&](const Failure& why) { arrived += !why; });
      }
    }
    job.run();
    EXPECT_EQ(arrived, alive.size() * (alive.size() - 1));
    return alive;
  }
  InprocJob job;
  std::vector<std::set<Rank>> heard;
};

TEST(Losses, survivors_of_a_kill_agree_and_only_waits_for_the_lost_one_end) {
  Scripted team(4);
  std::vector<std::byte> out(300'000), in(300'000);
  int failed = 0, done = 0;
  team.job.member(0).receive(2, {1, 0}, {}, in, [&](const Failure& why) { failed += why != nullptr; });
  team.job.member(0).send(2, {2, 0}, {}, out, [&](const Failure& why) { failed += why != nullptr; });
  team.job.member(0).send(1, {2, 0}, {}, out, [&](const Failure& why) { done += why == nullptr; });
  team.job.at(3ms, [&] { team.job.kill(2); });
  team.job.at(40ms, [&] {
    team.job.member(1).receive(0, {2, 0}, {}, in, [&](const Failure& why) { done += why == nullptr; });
    team.job.member(0).send(2, {3, 0}, {}, out, [&](const Failure& why) { failed += why != nullptr; });
  });
  team.job.run();
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(done, 2);
  EXPECT_THAT(team.survivors({2}), ElementsAre(0, 1, 3));
}

TEST(Losses, a_cut_link_costs_one_of_its_ends_and_a_cut_between_halves_one_half) {
  Scripted link(4);
  link.job.at(1ms, [&] { link.job.cut(1, 2); });
  link.job.run();
  EXPECT_THAT(link.survivors(), ElementsAre(0, 1, 3));
  EXPECT_THAT(link.job.member(2).failure()->what(), HasSubstr("rank 2"));

  Scripted halves(4);
  for (const auto& cut : {std::pair<Rank, Rank>{0, 1}, {0, 3}, {2, 1}, {2, 3}}) {
    halves.job.at(1ms, [&halves, cut] { halves.job.cut(cut.first, cut.second); });
  }
  halves.job.run();
  EXPECT_THAT(halves.survivors(), ElementsAre(0, 2));
}

// Whatever fails, and when: those that are left agree, and reach each other.
TEST(Losses, members_agree_under_any_faults) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 draw(seed);
    const Rank size = 3 + draw() % 5;
    Scripted team(size, seed);
    std::set<Rank> stopped;
    for (std::uint64_t faults = 1 + draw() % 4; faults > 0; --faults) {
      const Rank a = draw() % size, b = (a + 1 + draw() % (size - 1)) % size;
      const std::uint64_t kind = draw() % 3;
      if (kind < 2) stopped.insert(a);
      team.job.at(std::chrono::milliseconds(draw() % 200), [&team, a, b, kind] {
        kind == 0 ? team.job.kill(a) : kind == 1 ? team.job.freeze(a) : team.job.cut(a, b);
      });
    }
    team.job.run();
    team.survivors(stopped);
  }
}

// --- over TCP, members as processes

JoinOptions shrinking(JoinOptions options) {
  options.on_peer_lost = OnPeerLost::shrink;
  return options;
}

// Waits until that member is lost, and then exchanges something with all others.
std::string go_on_without(Job& job, Rank lost) {
  Transport& transport = job.transport();
  Countdown waited(1);
  std::byte never{};
  transport.post([&] { transport.receive(lost, {1, 0}, {}, {&never, 1}, waited.done()); });
  if (!waited.wait(transport) || waited.failures().empty()) return "not lost";
  if (transport.failure()) return transport.failure()->what();
  std::vector<std::byte> out(1 << 20, std::byte{5});
  std::vector<std::vector<std::byte>> in(transport.size(), std::vector<std::byte>(out.size()));
  Countdown done(static_cast<int>(2 * (transport.size() - 2)));
  transport.post([&] {
    for (Rank peer = 0; peer < transport.size(); ++peer) {
      if (peer == transport.rank() || peer == lost) continue;
      transport.receive(peer, {2, 0}, {}, std::span(in[peer]), done.done());
      transport.send(peer, {2, 0}, {}, std::span(out), done.done());
    }
  });
  if (!done.wait(transport) || !done.failures().empty()) return "others are not reached";
  return std::string("went on: ") + waited.failures()[0]->what();
}

TEST(Losses, processes_go_on_when_one_is_killed) {
  for (const bool shared_memory : {true, false}) {
    JoinOptions options = shrinking(quick());
    options.shared_memory = shared_memory;
    Team team(4, options, [](Job& job) { return go_on_without(job, 2); });
    team.members[2]->signal(SIGKILL);
    for (const Rank survivor : {0u, 1u, 3u}) {
      const std::string line = team.members[survivor]->line();
      EXPECT_EQ(line.rfind("went on: rank 2 (", 0), 0u) << line;
      EXPECT_THAT(line, HasSubstr("was lost: connection closed"));
    }
  }
}

TEST(Losses, processes_go_on_without_one_that_stands_still_and_it_learns_so) {
  Team team(3, shrinking(quick_health()), [](Job& job) { return go_on_without(job, job.transport().rank() == 0 ? 1 : 0); });
  team.members[0]->signal(SIGSTOP);
  for (const Rank survivor : {1u, 2u}) {
    const std::string line = team.members[survivor]->line();
    EXPECT_EQ(line.rfind("went on: rank 0 (", 0), 0u) << line;
    EXPECT_THAT(line, HasSubstr("was lost: not heard for 500 ms"));
  }
  team.members[0]->signal(SIGCONT);
  EXPECT_THAT(team.members[0]->line(), HasSubstr("this member (rank 0"));
}

// Rank 0 acknowledges nothing that is large: all of its links are no good, and of those of the others one each.
TEST(Losses, processes_go_on_without_the_one_whose_links_all_stand_still) {
  JoinOptions options = shrinking(quick_health());
  options.stalled = 300ms;
  options.shared_memory = false;
  Team team(3, options, [](Job& job) {
    Transport& transport = job.transport();
    static std::vector<std::byte> large(4 << 20);  // until this process ends
    if (transport.rank() == 0) {
      for (const OwnConnection& connection : own_connections()) swallow_large(connection);
    }
    transport.post([&] {  // before anything is heard of a loss
      if (transport.rank() == 0) {
        for (const Rank from : {1u, 2u}) transport.receive(from, {3, 0}, {}, std::span(large), [](const Failure&) {});
      } else {
        transport.send(0, {3, 0}, {}, std::span(large), [](const Failure&) {});
      }
    });
    return go_on_without(job, transport.rank() == 0 ? 1 : 0);
  });
  for (const Rank survivor : {1u, 2u}) {
    const std::string line = team.members[survivor]->line();
    EXPECT_EQ(line.rfind("went on: rank 0 (", 0), 0u) << line;
    EXPECT_THAT(line, testing::AnyOf(HasSubstr("has acknowledged nothing for 300 ms"), HasSubstr("it says: "))) << "whoever concludes first";
  }
  EXPECT_THAT(team.members[0]->line(), HasSubstr("this member (rank 0"));
}

}  // namespace
}  // namespace shoal::net

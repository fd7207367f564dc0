// Parts of a program that those who are left begin again: with all members of an attempt or with none, from their first step. Members are processes,
// which end themselves at a step of their own.
#include "shoal/collective/going_on.h"

#include <sstream>

#include "tests/net/forked.h"

namespace shoal::collective {
namespace {

using net::Rank;
using namespace std::chrono_literals;

constexpr int kRounds = 20;

// Everybody's number to everybody, round after round; the sum of what came in the last one.
int exchange(net::Transport& among, int own, const std::function<void(int round)>& before) {
  int sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    before(round);
    std::vector<int> in(among.size());
    net::Countdown open(static_cast<int>(2 * (among.size() - 1)));
    among.post([&] {
      for (Rank peer = 0; peer < among.size(); ++peer) {
        if (peer == among.rank()) continue;
        const net::Tag tag{net::operation_in(2, static_cast<std::uint64_t>(round)), 0};
        among.send(peer, tag, {}, std::as_bytes(std::span(&own, 1)), open.done());
        among.receive(peer, tag, {}, std::as_writable_bytes(std::span(in).subspan(peer, 1)), open.done());
      }
    });
    if (!open.wait(among)) return -1;
    if (!open.failures().empty()) throw Error(*open.failures().front());
    sum = own;
    for (const int number : in) sum += number;
  }
  return sum;
}

struct Death {
  Rank rank;   // in the job
  int attempt, round;
};

// "rank of size: sum", where each member's number is 1 << its first rank.
std::string go_on(net::Job& job, const std::vector<Death>& deaths) {
  std::ostringstream told;
  const Rank rank = job.transport().rank();
  int attempt = 0;
  go_on_without_lost(job.transport(), "the part", [&](net::Transport& among) {
    ++attempt;
    const auto dies_at = [&](int round) {
      for (const Death& death : deaths) {
        if (death.rank == rank && death.attempt == attempt && death.round == round) kill(getpid(), SIGKILL);
      }
    };
    const int sum = exchange(among, 1 << rank, dies_at);
    dies_at(kRounds);
    told.str("");
    told << among.rank() << " of " << among.size() << ": " << sum;
  });
  return told.str();
}

net::JoinOptions surviving() {
  net::JoinOptions options = net::quick();
  options.on_peer_lost = net::OnPeerLost::shrink;
  return options;
}

TEST(GoingOn, without_a_loss_it_is_done_once) {
  net::Team team(3, surviving(), [](net::Job& job) { return go_on(job, {}); });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(team.members[rank]->line(), std::to_string(rank) + " of 3: 7");
}

TEST(GoingOn, those_who_are_left_begin_it_again_whoever_is_lost_and_when) {
  for (const Rank victim : {0u, 1u, 2u}) {
    for (const int round : {0, kRounds / 2, kRounds - 1}) {
      SCOPED_TRACE(std::to_string(victim) + " in round " + std::to_string(round));
      net::Team team(3, surviving(), [&](net::Job& job) { return go_on(job, {{victim, 1, round}}); });
      int left = 0;
      for (Rank rank = 0; rank < 3; ++rank) {
        if (rank == victim) continue;
        EXPECT_EQ(team.members[rank]->line(), std::to_string(left++) + " of 2: " + std::to_string(7 - (1 << victim)));
      }
    }
  }
}

// Behind the last round: all who are left have come to the end with it, or all do it again.
TEST(GoingOn, of_a_loss_at_the_end_all_know_or_nobody) {
  net::Team team(3, surviving(), [](net::Job& job) { return go_on(job, {{1, 1, kRounds}}); });
  const std::string line = team.members[0]->line();
  EXPECT_TRUE(line == "0 of 3: 7" || line == "0 of 2: 5") << line;
  EXPECT_EQ(team.members[2]->line(), line == "0 of 3: 7" ? "2 of 3: 7" : "1 of 2: 5");
}

TEST(GoingOn, the_last_one_comes_to_the_end_alone) {
  net::Team team(3, surviving(), [](net::Job& job) { return go_on(job, {{1, 1, 3}, {0, 2, 5}}); });
  EXPECT_EQ(team.members[2]->line(), "0 of 1: 4");
}

TEST(GoingOn, what_one_cannot_do_ends_it_for_all_with_its_line) {
  net::Team team(3, surviving(), [](net::Job& job) -> std::string {
    try {
      go_on_without_lost(job.transport(), "the part", [&](net::Transport& among) {
        exchange(among, 1, [&](int round) {
          if (round != 3 || among.rank() != 1) return;
          const Error why(Code::mismatch, "this file is another one");
          among.post([&among, why] { among.fail(why); });
          throw why;
        });
      });
    } catch (const Error& error) {
      return std::string(name(error.code())) + ": " + error.what();
    }
    return "came to its end";
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string line = team.members[rank]->line();
    EXPECT_EQ(line.rfind("mismatch: ", 0), 0u) << line;
    EXPECT_NE(line.find("this file is another one"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace shoal::collective

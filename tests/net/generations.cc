// Others come in place of lost members: who waits for them, in which generation of the run, and until when.
#include <chrono>
#include <thread>

#include "members.h"
#include "shoal/net/again.h"
#include "shoal/net/card.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/meet.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

JoinOptions rejoining() {
  JoinOptions options = with_environment(quick());
  options.on_peer_lost = OnPeerLost::rejoin;
  options.takes_over = true;
  return options;
}

Place started_at(const Coordinator& coordinator, Rank rank, Rank size) {
  Place at = place_at(coordinator, rank, size);
  at.launcher = Place::Launcher::shoal;
  return at;
}

TEST(Generations, a_stale_generation_is_refused_and_who_waits_in_it_is_told) {
  Coordinator coordinator("s", "127.0.0.1:0");
  Place old = place_at(coordinator, 0, 2), next = place_at(coordinator, 1, 2);
  next.generation = 3;
  CoordinatorClient waiting("s", old);
  std::thread other([&] {
    try {
      waiting.get("member/1", 60s);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "join: generation 0 of this run is over: generation 3 has begun "
                                           "(end this process; its launcher has started another in its place)");
    }
  });
  CoordinatorClient later("s", next);
  other.join();
  try {
    CoordinatorClient late("s", old);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::mismatch);
    EXPECT_EQ(error.fact(), "generation 0 of this run is over: a later one has begun");
  }
}

// Goal: who waits in a generation that will not be complete goes on to the next one, whoever comes to the board first. Method: a survivor waits for the member
// that was started in the lost one's place, which is lost itself; another of the next generation arrives while the survivor still waits.
TEST(Generations, who_waits_in_a_generation_that_is_over_goes_on_to_the_next) {
  Coordinator coordinator("", "127.0.0.1:0", "shoal", 2);
  coordinator.put(kLauncherKey, "a test");
  const JoinOptions options = rejoining();
  const Place survivor = started_at(coordinator, 0, 2);
  Place newcomer = started_at(coordinator, 1, 2);
  newcomer.generation = 2;
  std::unique_ptr<Job> jobs[2];
  coordinator.put(again_key(1), "2");
  each(2, [&](Rank rank) {
    if (rank == 0) {
      jobs[0] = join_again(survivor, {1}, options);
    } else {
      CoordinatorClient board("", coordinator.address());
      board.get(cards_in(scope_of(1)) + "0", 10s);  // the survivor waits
      CoordinatorClient here("", newcomer);         // who waits is told
      coordinator.put(again_key(2), "2");
      jobs[1] = join_tcp(newcomer, here, scope_of(2), "", options);
    }
  });
  ASSERT_TRUE(jobs[0] && jobs[1]);
  EXPECT_EQ(jobs[0]->place().generation, 2u);
}

// Goal: who goes on without the others can end its wait for them at any time. Method: it waits for a generation that has not begun, and in one in which nobody
// else comes, with a patience of an hour. Relation: cancelled, and the board has whom it had lost.
TEST(Generations, who_needs_the_others_no_longer_ends_its_wait) {
  Coordinator coordinator("", "127.0.0.1:0", "shoal", 2);
  coordinator.put(kLauncherKey, "a test");
  JoinOptions options = rejoining();
  options.patience = 1h;
  const Place survivor = started_at(coordinator, 0, 2);
  for (const bool has_begun : {false, true}) {
    if (has_begun) coordinator.put(again_key(1), "2");
    std::string ending = "none";
    std::jthread waiting([&](const std::stop_token& stop) {
      try {
        join_again(survivor, {1}, options, stop);
      } catch (const Error& error) {
        ending = name(error.code());
      }
    });
    CoordinatorClient board("", coordinator.address());
    EXPECT_EQ(board.get(has_begun ? cards_in(scope_of(1)) + "0" : lost_key(0), 10s).empty(), false);
    waiting.request_stop();
    waiting.join();
    EXPECT_EQ(ending, "cancelled");
  }
}

// Goal: a member beyond those that there are comes by itself, once they take others, and the next generation has all. Method: two members of a run without a launcher;
// a third, of rank 2, comes before rank 0 says that they go on with more. Relation: a job of three in generation 1 on each, and nobody counts as lost.
TEST(Generations, who_is_one_more_comes_when_the_others_take_more) {
  Coordinator coordinator("", "127.0.0.1:0", "shoal", 2);
  const JoinOptions options = rejoining();
  const auto place = [&](Rank rank, Rank size) { return started_at(coordinator, rank, size); };
  std::unique_ptr<Job> before[2], jobs[3];
  each(2, [&](Rank rank) { before[rank] = join_or_come(place(rank, 2), "", options); });
  each(3, [&](Rank rank) {
    if (rank == 2) {
      jobs[2] = join_or_come(place(2, 3), "", options);
    } else {
      if (rank == 0) {
        EXPECT_EQ(wait_for_more(before[0]->place(), {}), 3u);
      }
      CoordinatorClient("", coordinator.address()).get(again_key(1), 20s);  // rank 0 leaves then, which the other hears
      jobs[rank] = join_again(before[rank]->place(), rank == 1 ? std::vector<Rank>{0} : std::vector<Rank>{}, options);
    }
  });
  for (const auto& job : jobs) {
    ASSERT_TRUE(job);
    EXPECT_EQ(job->place().generation, 1u);
    EXPECT_EQ(job->place().size, 3u);
    EXPECT_EQ(job->members().size(), 3u);
  }
  EXPECT_FALSE(coordinator.find(lost_key(0)));
}

// They say so only while they do, and who waits for them hears of it.
TEST(Generations, who_is_one_more_is_refused_where_the_others_take_nobody) {
  Coordinator coordinator("", "127.0.0.1:0", "shoal", 2);
  JoinOptions options = rejoining();
  Place place = started_at(coordinator, 0, 2);
  std::jthread waiting([&](const std::stop_token& stop) { EXPECT_FALSE(wait_for_more(place, stop)); });
  CoordinatorClient board("", coordinator.address());
  EXPECT_EQ(board.get(grows_key(0), 10s), "yes");
  EXPECT_TRUE(takes_more(coordinator, 0));
  waiting.request_stop();
  waiting.join();
  EXPECT_FALSE(takes_more(coordinator, 0));
  EXPECT_FALSE(begin_with_more(coordinator, 1, 1, 3));
  EXPECT_FALSE(coordinator.find(again_key(1)));
  options.patience = 300ms;
  place.rank = 2;
  place.size = 3;
  try {
    join_or_come(place, "", options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fact(), "rank 2 would be one more than there are, and those take nobody beside them, or not this one yet");
  }
}

// Several come at once: one word stands, and all go by it.
TEST(Generations, what_is_put_first_stands) {
  Coordinator coordinator("", "127.0.0.1:0", "shoal", 2);
  CoordinatorClient one("", coordinator.address()), another("", coordinator.address());
  EXPECT_EQ(one.get(kFirstKey, 10s), "2");
  EXPECT_EQ(one.put_first("again/1", "3"), "3");
  EXPECT_EQ(another.put_first("again/1", "2"), "3");
  EXPECT_EQ(another.get("again/1", 1s), "3");
}

// Whom a launcher has started beside the others has to do with them only when it says so; one that differs is refused before that.
TEST(Generations, who_waits_to_come_disturbs_nobody) {
  Coordinator coordinator("", "127.0.0.1:0", "shoal", 2);
  coordinator.put(kLauncherKey, "a test");
  const JoinOptions options = rejoining();
  const auto place = [&](Rank rank, Rank size) { return started_at(coordinator, rank, size); };
  std::unique_ptr<Job> before[2], jobs[3];
  each(2, [&](Rank rank) { before[rank] = join_or_come(place(rank, 2), "", options); });
  CoordinatorClient board("", coordinator.address());
  JoinOptions different = options;
  different.settings["Torch"] = "another";
  board.put("waits/7/2", write_card(card_of(place(2, 3), "", different)));
  EXPECT_TRUE(waits(coordinator, 7, 2));
  try {
    require_alike(coordinator, 7, 2, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::mismatch);
    EXPECT_NE(error.fact().find("has no Torch, rank 2"), std::string::npos) << error.fact();
  }
  setenv(kJoinsVariable, "8", 1);
  each(3, [&](Rank rank) {
    if (rank == 2) {
      jobs[2] = join_or_come(place(2, 3), "", options);
      return;
    }
    if (rank == 0) {
      std::jthread launcher([&] {
        CoordinatorClient at("", coordinator.address());
        at.get("waits/8/2", 20s);
        at.get(grows_key(0), 20s);
        require_alike(coordinator, 8, 2, 0);
        EXPECT_TRUE(begin_with_more(coordinator, 8, 1, 3));
      });
      EXPECT_EQ(wait_for_more(before[0]->place(), {}), 3u);
    }
    CoordinatorClient("", coordinator.address()).get(again_key(1), 20s);
    jobs[rank] = join_again(before[rank]->place(), rank == 1 ? std::vector<Rank>{0} : std::vector<Rank>{}, options);
  });
  unsetenv(kJoinsVariable);
  for (const auto& job : jobs) EXPECT_TRUE(job && job->place().size == 3 && job->place().generation == 1);
}

}  // namespace
}  // namespace shoal::net

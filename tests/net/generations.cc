// Others come in place of lost members: who waits for them, in which generation of the run, and until when.
#include <chrono>
#include <thread>

#include "members.h"
#include "shoal/net/again.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/meet.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

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
  JoinOptions options = quick();
  options.on_peer_lost = OnPeerLost::rejoin;
  options.takes_over = true;
  Place survivor = place_at(coordinator, 0, 2), newcomer = place_at(coordinator, 1, 2);
  survivor.launcher = newcomer.launcher = Place::Launcher::shoal;
  newcomer.generation = 2;
  std::unique_ptr<Job> jobs[2];
  coordinator.put(again_key(1), "1");
  each(2, [&](Rank rank) {
    if (rank == 0) {
      jobs[0] = join_again(survivor, {1}, options);
    } else {
      CoordinatorClient board("", coordinator.address());
      board.get(cards_in(scope_of(1)) + "0", 10s);  // the survivor waits
      CoordinatorClient here("", newcomer);         // who waits is told
      coordinator.put(again_key(2), "1");
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
  JoinOptions options = quick();
  options.patience = 1h;
  options.on_peer_lost = OnPeerLost::rejoin;
  options.takes_over = true;
  Place survivor = place_at(coordinator, 0, 2);
  survivor.launcher = Place::Launcher::shoal;
  for (const bool has_begun : {false, true}) {
    if (has_begun) coordinator.put(again_key(1), "1");
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

}  // namespace
}  // namespace shoal::net

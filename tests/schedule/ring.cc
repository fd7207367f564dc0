// The ring: blocks arrive where they are needed, whole, on threads of one member and of several; who waits in vain learns why.
#include "shoal/schedule/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "shoal/core/error.h"
#include "tests/net/members.h"

namespace shoal::schedule {
namespace {

// Who had it, in order.
struct Trail {
  std::vector<std::uint32_t> workers;
  Bytes packed() const {
    Bytes bytes(workers.size() * sizeof(std::uint32_t));
    std::memcpy(bytes.data(), workers.data(), bytes.size());
    return bytes;
  }
  static std::unique_ptr<Trail> unpacked(std::span<const std::byte> bytes) {
    auto trail = std::make_unique<Trail>();
    trail->workers.resize(bytes.size() / sizeof(std::uint32_t));
    std::memcpy(trail->workers.data(), bytes.data(), bytes.size());
    return trail;
  }
};

// threads: of each member.
void expect_round_trips(const std::vector<std::uint32_t>& threads, std::uint32_t ahead, unsigned rounds) {
  const auto members = static_cast<net::Rank>(threads.size());
  std::vector<net::Rank> member_of;
  for (net::Rank rank = 0; rank < members; ++rank) member_of.insert(member_of.end(), threads[rank], rank);
  const Rotation rotation{static_cast<std::uint32_t>(member_of.size()), ahead};
  auto jobs = net::join_all(members);
  std::vector<std::unique_ptr<Ring<Trail>>> rings(members);
  net::each(members, [&](net::Rank rank) {
    rings[rank] = std::make_unique<Ring<Trail>>(jobs[rank]->transport(), 9, rotation, member_of, std::chrono::seconds(20));
  });
  const std::uint64_t steps = std::uint64_t{rounds} * rotation.blocks();
  net::each(rotation.workers, [&](std::uint32_t worker) {
    Ring<Trail>& ring = *rings[member_of[worker]];
    Nanoseconds waited{};
    for (std::uint32_t i = 0; i < ahead; ++i) ring.put(worker, i, std::make_unique<Trail>());
    for (std::uint64_t step = 0; step < steps; ++step) {
      std::unique_ptr<Trail> trail = ring.take(worker, step, waited);
      trail->workers.push_back(worker);
      ring.pass(worker, step, std::move(trail));
    }
    for (std::uint64_t step = steps; step < steps + ahead; ++step) {
      const std::vector<std::uint32_t> had = ring.take(worker, step, waited)->workers;
      ASSERT_EQ(had.size(), rounds * rotation.workers);
      for (std::size_t i = 0; i < had.size(); ++i) EXPECT_EQ(had[i], (worker + rotation.workers * rounds - i) % rotation.workers);
    }
  });
  rings.clear();
  net::leave_all(jobs);
}

TEST(Ring, BlocksMeetAllWorkersInTurn) {
  expect_round_trips({1}, 1, 3);
  expect_round_trips({4}, 2, 5);
  expect_round_trips({1, 1, 1}, 1, 5);
  expect_round_trips({2, 2, 2}, 2, 4);
  expect_round_trips({3, 1, 2}, 2, 4);
}

// Copies stay with their members, and what is told arrives whole, whenever it is asked for.
TEST(Ring, CopiesGoRoundTheirTeamAndWhatIsToldArrives) {
  const std::vector<net::Rank> member_of{0, 0, 1, 2};
  const Rotation rotation{4, 2};
  auto jobs = net::join_all(3);
  std::vector<std::unique_ptr<Ring<Trail>>> rings(3);
  net::each(3, [&](net::Rank rank) {
    rings[rank] = std::make_unique<Ring<Trail>>(jobs[rank]->transport(), 9, rotation, member_of, std::chrono::seconds(20), Holding::copies);
    for (std::uint32_t block = 0; block < rotation.blocks(); ++block) {
      const Place first = rotation.first_within(rings[rank]->team(rank), block, 0);
      rings[rank]->put(first.worker, first.step, std::make_unique<Trail>());
    }
  });
  const std::uint64_t steps = 3 * rotation.blocks();
  net::each(rotation.workers, [&](std::uint32_t worker) {
    Ring<Trail>& ring = *rings[member_of[worker]];
    Nanoseconds waited{};
    for (std::uint64_t step = 0; step < steps; ++step) {
      std::unique_ptr<Trail> trail = ring.take(worker, step, waited);
      for (const std::uint32_t had : trail->workers) EXPECT_EQ(member_of[had], member_of[worker]);
      trail->workers.push_back(worker);
      ring.tell({worker, step}, trail->packed());
      ring.pass(worker, step, std::move(trail));
    }
    for (std::uint32_t other = 0; other < rotation.workers; ++other) {
      if (member_of[other] == member_of[worker] || worker == 1) continue;  // of rank 0 one worker reads
      for (const std::uint64_t step : {steps - 1, std::uint64_t{0}}) {
        for (int time = 0; time < 2; ++time) EXPECT_EQ(Trail::unpacked(ring.told({other, step}, waited))->workers.back(), other);
        ring.drop({other, step});
      }
    }
    EXPECT_GT(ring.sent(), 0u);
  });
  rings.clear();
  net::leave_all(jobs);
}

TEST(Ring, WhoWaitsForALostMemberLearnsWhy) {
  auto jobs = net::join_all(2);
  {
    Ring<Trail> ring(jobs[0]->transport(), 9, {2, 1}, {0, 1}, std::chrono::seconds(20));
    jobs[1].reset();
    Nanoseconds waited{};
    try {
      ring.take(0, 0, waited);
      FAIL() << "took a block that nobody passed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::peer_lost) << error.what();
    }
  }
  jobs[0].reset();
}

}  // namespace
}  // namespace shoal::schedule

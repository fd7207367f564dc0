// Goal: under any staleness and over any overlay, on a network that delays as it likes, a read holds what it must and whole prefixes of each
// member's updates; after a barrier all members have the bits of a recount in the order of (clock, rank).
#include "shoal/replica/replica.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "shoal/net/inproc.h"
#include "shoal/replica/broadcast.h"
#include "tests/from_environment.h"
#include "tests/net/members.h"

namespace shoal::replica {
namespace {

constexpr Key kRows = 30;

struct Case {
  net::Rank members;
  unsigned staleness;
  enum class Over { full, halton, fitted } over;
};

std::optional<factor::Overlay> overlay_of(const Case& of, std::uint64_t seed) {
  switch (of.over) {
    case Case::Over::full: return std::nullopt;
    case Case::Over::halton: return factor::Overlay::halton(of.members);
    default:
      return factor::Overlay::fitted(of.members, 2, [=](net::Rank from, net::Rank to) {
        return 1.0 + static_cast<double>((from * 7 + to * 13 + seed) % 10);
      });
  }
}

// A member's update of a clock: the column of its rank counts clocks in every row; another column gains random numbers in a few rows.
factor::Outer<double> update_of(net::Rank rank, net::Rank members, Clock clock, std::uint64_t seed) {
  std::mt19937_64 random(seed * 1000003 + rank * 1009 + static_cast<std::uint64_t>(clock));
  std::vector<Key> rows(kRows);
  std::iota(rows.begin(), rows.end(), Key{0});
  factor::Outer<double> outer(members + 1, rows);
  outer.new_vector()[rank] = 1;
  for (Key row = 0; row < kRows; ++row) outer.add(row, 1);
  outer.new_vector()[members] = std::normal_distribution<double>()(random);
  for (Key row = random() % 5; row < kRows; row += 1 + random() % 7) outer.add(row, static_cast<float>(random() % 1000) / 7);
  outer.seal();
  return outer;
}

// Each member has its own number of clocks, two rounds of them with a barrier between.
class Scripted {
 public:
  Scripted(const Case& of, std::uint64_t seed)
      : of_(of),
        seed_(seed),
        random_(seed),
        job_(of.members, {.seed = seed}),
        stage_(of.members),
        number_(of.members),
        begun_(of.members) {
    for (net::Rank rank = 0; rank < of.members; ++rank) {
      replicas_.push_back(std::make_unique<Replica<double>>(job_.member(rank), Options{.name = "w",
                                                                                       .rows = kRows,
                                                                                       .width = of.members + 1,
                                                                                       .staleness = of.staleness,
                                                                                       .overlay = overlay_of(of, seed)}));
      clocks_.push_back({Clock(1 + random_() % 6), Clock(1 + random_() % 6)});
    }
  }
  ~Scripted() { replicas_.clear(); }

  void run() {
    const auto movable = [&] {
      for (net::Rank rank = 0; rank < of_.members; ++rank) {
        if (can_move(rank)) return true;
      }
      return false;
    };
    while (!std::ranges::all_of(stage_, [](int stage) { return stage == 4; })) {
      ASSERT_TRUE(job_.run(movable)) << "nobody can move, and nothing is on its way";
      auto rank = static_cast<net::Rank>(random_() % of_.members);
      while (!can_move(rank)) rank = (rank + 1) % of_.members;
      move(rank);
      if (random_() % 4 == 0) continue;  // time passes
      const Instant until = job_.now() + std::chrono::microseconds(random_() % 500);
      job_.at(until - Instant{}, [] {});
      job_.run([&] { return job_.now() >= until; });
    }
    std::vector<double> expected(kRows * (of_.members + 1));
    Clock begin = 0;
    for (const std::size_t round : {0u, 1u}) {
      Clock most = 0;
      for (const auto& clocks : clocks_) most = std::max(most, clocks[round]);
      for (Clock clock = begin; clock < begin + most; ++clock) {
        for (net::Rank rank = 0; rank < of_.members; ++rank) {
          if (clock >= begin + clocks_[rank][round]) continue;
          const auto outer = update_of(rank, of_.members, clock, seed_);
          for (std::size_t at = 0; at < outer.rows().size(); ++at)
            outer.add_to(at, std::span(expected).subspan(outer.rows()[at] * outer.width(), outer.width()));
        }
      }
      begin += most;
    }
    for (const auto& replica : replicas_) {
      EXPECT_EQ(replica->clock(), begin);
      std::vector<double> found(expected.size());
      std::vector<Key> keys(kRows);
      for (Key key = 0; key < kRows; ++key) keys[key] = key;
      replica->read(keys, found);
      EXPECT_EQ(found, expected);
    }
  }

 private:
  // stage: 0 and 2 in a round; 1 and 3 at the barrier behind it; 4 done.
  bool can_move(net::Rank rank) {
    if (stage_[rank] == 4) return false;
    return stage_[rank] % 2 == 0 ? replicas_[rank]->may_go_on() : replicas_[rank]->have_met(number_[rank]);
  }

  void move(net::Rank rank) {
    Replica<double>& replica = *replicas_[rank];
    int& stage = stage_[rank];
    if (stage % 2 == 1) {
      begun_[rank] = replica.clock();
      ++stage;
      return;
    }
    const Clock done = replica.clock() - begun_[rank];
    check(rank);
    if (done == clocks_[rank][static_cast<std::size_t>(stage) / 2]) {
      number_[rank] = replica.arrive();
      ++stage;
      return;
    }
    replica.add(update_of(rank, of_.members, replica.clock(), seed_));
    EXPECT_EQ(replica.row(0)[rank], own_of(rank) + 1);  // its own at once
    replica.end_clock();
  }

  double own_of(net::Rank rank) const {
    const Clock done = replicas_[rank]->clock() - begun_[rank];
    return static_cast<double>(done + (stage_[rank] >= 2 ? clocks_[rank][0] : 0));
  }

  void check(net::Rank reader) {
    const Replica<double>& replica = *replicas_[reader];
    for (net::Rank rank = 0; rank < of_.members; ++rank) {
      const double seen = replica.row(0)[rank];
      for (Key key = 1; key < kRows; ++key) EXPECT_EQ(replica.row(key)[rank], seen);  // whole updates
      // Of each clock before the last `staleness` ones of this round, as far as that member has so many, and all of the round before.
      const std::size_t round = stage_[reader] >= 2 ? 1 : 0;
      const Clock due = std::min(clocks_[rank][round], replica.clock() - begun_[reader] - static_cast<Clock>(of_.staleness));
      const Clock before = round == 1 ? clocks_[rank][0] : 0;
      EXPECT_GE(seen, static_cast<double>(before + std::max<Clock>(0, due)));
      EXPECT_LE(seen, static_cast<double>(clocks_[rank][0] + clocks_[rank][1]));
      if (of_.staleness == 0) {
        EXPECT_EQ(seen, static_cast<double>(before + std::max<Clock>(0, due)));
      }
    }
  }

  const Case of_;
  const std::uint64_t seed_;
  std::mt19937_64 random_;
  net::InprocJob job_;
  std::vector<std::unique_ptr<Replica<double>>> replicas_;
  std::vector<std::array<Clock, 2>> clocks_;
  std::vector<int> stage_;
  std::vector<std::uint64_t> number_;
  std::vector<Clock> begun_;
};

TEST(Replica, reads_hold_what_they_must_and_barriers_level_all_bits) {
  for (const std::uint64_t seed : seeds(40)) {
    SCOPED_TRACE("SHOAL_SEEDS: seed " + std::to_string(seed));
    const Case of{1 + static_cast<net::Rank>(seed % 7), static_cast<unsigned>(seed / 7 % 4), static_cast<Case::Over>(seed % 3)};
    Scripted(of, seed).run();
    if (HasFailure()) return;
  }
}

template <class Work>
void on_members(net::Rank members, const Work& work) {
  auto jobs = net::join_all(members);
  net::each(members, [&](net::Rank rank) { work(rank, jobs[rank]->transport()); });
  net::leave_all(jobs);
}

// Goal: the same over sockets and with threads that wait; rows that one member gives are everybody's.
TEST(Replica, over_sockets_rows_that_one_gives_are_everybodys) {
  constexpr net::Rank members = 4;
  on_members(members, [&](net::Rank rank, net::Transport& transport) {
    Replica<double> replica(
        transport,
        {.name = "w", .rows = kRows, .width = members + 1, .staleness = 1, .overlay = factor::Overlay::halton(members)});
    const std::vector<Key> key = {7};
    if (rank == 2) replica.set(key, std::vector<double>{1, 2, 3, 4, 5});
    replica.barrier();
    EXPECT_EQ(std::vector<double>(replica.row(7).begin(), replica.row(7).end()), (std::vector<double>{1, 2, 3, 4, 5}));
    replica.scale(2, 8);
    for (Clock clock = 0; clock < 50; ++clock) {
      replica.add(update_of(rank, members, clock, 1));
      replica.tick();
    }
    replica.barrier();
    for (net::Rank of = 0; of < members; ++of) EXPECT_EQ(replica.row(7)[of], 2 * (of + 1) + 50);
  });
}

TEST(Replica, members_that_mean_another_matrix_are_told_so) {
  on_members(2, [&](net::Rank rank, net::Transport& transport) {
    Replica<float> replica(transport, {.name = "w", .rows = kRows, .width = 3 + rank});
    try {
      replica.barrier();
      ADD_FAILURE() << "met";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::mismatch) << error.what();
    }
  });
}

// Goal: nothing counts of a member that has not said what it has. Method: one that only sends a header, as another program would.
TEST(Replica, what_comes_before_a_description_ends_the_job) {
  net::InprocJob job(2);
  int delivered = 0;
  const Broadcast broadcast(job.member(0), 9, factor::Overlay::full(2), "w", [&](const Message&) { ++delivered; });
  const Header header{.kind = Kind::barrier, .origin = 1};
  job.member(1).send(0, {net::operation_in(9, 0), 0}, {.cls = net::Class::urgent}, std::as_bytes(std::span(&header, 1)), [](const net::Failure&) {});
  job.run();
  EXPECT_EQ(delivered, 0);
  ASSERT_TRUE(job.member(0).failure());
  EXPECT_EQ(job.member(0).failure()->code(), Code::mismatch);
}

TEST(Replica, who_waits_for_a_member_that_has_left_is_told_so) {
  on_members(2, [&](net::Rank rank, net::Transport& transport) {
    Replica<float> replica(transport, {.name = "w", .rows = kRows, .width = 3});
    if (rank == 0) return;
    try {
      replica.tick();
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 0 has left"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace shoal::replica

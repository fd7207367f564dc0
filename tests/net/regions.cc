// Memory that others put into and get from: the bytes, their order against signals, and the lines where a place does not exist.
// On the scripted network, where the seed decides who is late, and over real members of one host, also by UCX where that is installed.
#include "shoal/net/regions.h"

#include <numeric>
#include <optional>

#include "members.h"
#include "shoal/net/inproc.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kRegionsChannel = 3;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) { return std::as_bytes(std::span(values)); }
template <typename T>
std::span<std::byte> room_of(std::vector<T>& values) { return std::as_writable_bytes(std::span(values)); }

Done expect_success(int& left) {
  ++left;
  return [&left](const Failure& why) {
    EXPECT_FALSE(why) << why->what();
    --left;
  };
}

// Goal: a signal is never seen before the bytes that were put before it. Every member puts 20 times 5,000 numbers into its own part
// of every other's region and signals each; whoever sees sequence s finds at least the s-th numbers, whole.
TEST(Regions, a_signal_follows_all_that_was_put_before_it) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    constexpr Rank kMembers = 3;
    constexpr std::uint64_t kRounds = 20, kCount = 5000;
    InprocJob job(kMembers, {.seed = seed});
    std::vector<std::vector<std::uint64_t>> memory(kMembers, std::vector<std::uint64_t>(kMembers * kCount));
    std::vector<std::vector<std::uint64_t>> put(kMembers * kRounds);
    std::vector<std::unique_ptr<Regions>> regions;
    int left = 0;
    for (Rank rank = 0; rank < kMembers; ++rank) {
      regions.push_back(std::make_unique<Regions>(job.member(rank), kRegionsChannel));
      regions[rank]->add(0, room_of(memory[rank]));
    }
    for (Rank rank = 0; rank < kMembers; ++rank) {
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        auto& values = put[rank * kRounds + round - 1];
        values.assign(kCount, round);
        for (Rank peer = 0; peer < kMembers; ++peer) {
          if (peer == rank) continue;
          regions[rank]->put(peer, {0, rank * kCount * sizeof(std::uint64_t)}, {}, bytes_of(values), expect_success(left));
          regions[rank]->signal(peer, round);
        }
      }
    }
    std::uint64_t torn = 0;
    const auto all_seen = [&] {
      bool all = true;
      for (Rank rank = 0; rank < kMembers; ++rank) {
        for (Rank peer = 0; peer < kMembers; ++peer) {
          if (peer == rank) continue;
          const std::uint64_t sequence = regions[rank]->signalled(peer);
          all = all && sequence == kRounds;
          for (std::uint64_t i = 0; i < kCount; i += 499) torn += memory[rank][peer * kCount + i] < sequence;
        }
      }
      return all;
    };
    EXPECT_TRUE(job.run(all_seen));
    EXPECT_EQ(torn, 0u);
    job.run([&] { return left == 0; });
    EXPECT_EQ(left, 0);
  }
}

TEST(Regions, a_get_brings_what_lies_there) {
  InprocJob job(2);
  std::vector<std::uint32_t> memory(100'000), into(1000), first(1);
  std::iota(memory.begin(), memory.end(), 0u);
  Regions owner(job.member(0), kRegionsChannel), reader(job.member(1), kRegionsChannel);
  owner.add(7, room_of(memory));
  int left = 0;
  reader.get(0, {7, 4 * 50'000}, {}, room_of(into), expect_success(left));
  reader.get(0, {7, 0}, {}, room_of(first), expect_success(left));
  EXPECT_TRUE(job.run([&] { return left == 0; }));
  EXPECT_EQ(into.front(), 50'000u);
  EXPECT_EQ(into.back(), 50'999u);
  EXPECT_EQ(first[0], 0u);
}

TEST(Regions, a_put_waits_for_its_region) {
  InprocJob job(2);
  std::vector<std::uint32_t> memory(300'000), values(300'000, 5);
  Regions owner(job.member(0), kRegionsChannel), writer(job.member(1), kRegionsChannel);
  int left = 0;
  writer.put(0, {1, 0}, {}, bytes_of(values), expect_success(left));
  writer.signal(0, 1);
  EXPECT_FALSE(job.run([&] { return owner.signalled(1) == 1; }));  // nothing more can happen
  EXPECT_EQ(left, 1);
  owner.add(1, room_of(memory));
  EXPECT_TRUE(job.run([&] { return owner.signalled(1) == 1; }));
  EXPECT_EQ(memory, values);
  try {
    owner.add(1, {});
    ADD_FAILURE() << "a number twice";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "region 1 is registered already");
  }
}

TEST(Regions, a_place_outside_ends_the_job_with_a_line_that_names_it) {
  for (const std::uint64_t offset : {std::uint64_t{5}, std::uint64_t{9}, UINT64_MAX}) {
    InprocJob job(2);
    std::vector<std::byte> memory(8), values(4);
    Regions owner(job.member(0), kRegionsChannel), writer(job.member(1), kRegionsChannel);
    owner.add(1, memory);
    writer.put(0, {1, offset}, {}, values, [](const Failure&) {});
    ASSERT_TRUE(job.run([&] { return job.member(1).failure() != nullptr; }));
    EXPECT_EQ(job.member(1).failure()->code(), Code::mismatch);
    EXPECT_NE(std::string(job.member(1).failure()->what())
                  .find("rank 1 reaches for 4 bytes from byte " + std::to_string(offset) + " of region 1 of rank 0, which has 8"),
              std::string::npos)
        << job.member(1).failure()->what();
  }
}

TEST(Regions, what_waits_ends_with_them) {
  InprocJob job(2);
  std::vector<std::byte> into(8);
  Regions owner(job.member(0), kRegionsChannel);
  std::optional<Regions> reader(std::in_place, job.member(1), kRegionsChannel);
  Failure ended;
  reader->get(0, {1, 0}, {}, into, [&](const Failure& why) { ended = why; });
  reader.reset();
  job.run([&] { return ended != nullptr; });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code(), Code::cancelled);
}

// The same over members that share memory: each gives its neighbour's part of a ring, by put and by get.
TEST(Regions, between_members_of_one_host) {
  constexpr Rank kMembers = 4;
  auto jobs = join_all(kMembers);
  each(kMembers, [&](Rank rank) {
    Transport& transport = jobs[rank]->transport();
    std::vector<std::uint32_t> own(1 << 20, rank), put_here(1 << 20), got(1 << 20);
    const Rank next = (rank + 1) % kMembers, before = (rank + kMembers - 1) % kMembers;
    std::unique_ptr<Regions> regions;
    Countdown done(2);
    transport.post([&] {
      regions = std::make_unique<Regions>(transport, kRegionsChannel);
      regions->add(0, room_of(own));
      regions->add(1, room_of(put_here));
      regions->put(next, {1, 0}, {}, bytes_of(own), done.done());
      regions->signal(next, 1);
      regions->get(next, {0, 0}, {}, room_of(got), done.done());
    });
    ASSERT_TRUE(done.wait(transport));
    EXPECT_TRUE(done.failures().empty());
    ASSERT_TRUE(transport.drive([&] { return regions->signalled(before) == 1; }, steady_now() + 20s));
    EXPECT_EQ(put_here, std::vector<std::uint32_t>(1 << 20, before));
    EXPECT_EQ(got, std::vector<std::uint32_t>(1 << 20, next));
    Countdown told(2);  // a member leaves when nobody reads its memory any more
    std::byte word{}, came{};
    transport.post([&] {
      transport.send(next, {77, 0}, {}, std::span(&word, 1), told.done());
      transport.receive(before, {77, 0}, {}, std::span(&came, 1), told.done());
    });
    EXPECT_TRUE(told.wait(transport));
    Countdown gone(1);
    transport.post([&] {
      regions.reset();
      gone.done()(nullptr);
    });
    EXPECT_TRUE(gone.wait(transport));
  });
  leave_all(jobs);
}

// --- by UCX

// Regions of every member with one array each, which the others put into one-sidedly; destroyed when all have finished.
class OneSided {
 public:
  OneSided(Transport& transport, std::size_t count, std::uint16_t channel = kRegionsChannel) : transport_(transport), memory(count) {
    on_loop([this, channel] { regions = std::make_unique<Regions>(transport_, channel, Regions::Puts::ucx); });
  }
  ~OneSided() {
    meet();
    on_loop([this] { regions.reset(); });
  }
  void on_loop(const std::function<void()>& fn) {
    Countdown done(1);
    transport_.post([&] {
      fn();
      done.done()(nullptr);
    });
    EXPECT_TRUE(done.wait(transport_));
  }
  void meet() {
    Countdown told(2 * (transport_.size() - 1));
    std::vector<std::byte> words(2 * transport_.size());
    const std::uint64_t operation = 77 + met_++;
    transport_.post([&] {
      for (Rank peer = 0; peer < transport_.size(); ++peer) {
        if (peer == transport_.rank()) continue;
        transport_.send(peer, {operation, 0}, {}, std::span(words).subspan(2 * peer, 1), told.done());
        transport_.receive(peer, {operation, 0}, {}, std::span(words).subspan(2 * peer + 1, 1), told.done());
      }
    });
    EXPECT_TRUE(told.wait(transport_));
  }
  bool until(const std::function<bool()>& ready) { return transport_.drive(ready, steady_now() + 20s); }

 private:
  Transport& transport_;
  std::uint64_t met_ = 0;

 public:
  std::vector<std::uint64_t> memory;
  std::unique_ptr<Regions> regions;
};

// Why members here cannot; empty: they can.
std::string no_ucx() {
  InprocJob job(1);
  return Regions(job.member(0), kRegionsChannel, Regions::Puts::ucx).why_not();
}

// Goal, method and relation as above, by real members; each region is registered after others reach for it, and what lies in it is fetched, too.
TEST(RegionsByUcx, a_signal_follows_all_that_was_put_before_it) {
  if (const std::string why = no_ucx(); !why.empty()) GTEST_SKIP() << why;
  constexpr Rank kMembers = 3;
  constexpr std::uint64_t kRounds = 20, kCount = 50'000;
  auto jobs = join_all(kMembers);
  each(kMembers, [&](Rank rank) {
    OneSided own(jobs[rank]->transport(), kMembers * kCount);
    std::vector<std::vector<std::uint64_t>> put(kRounds);
    std::vector<std::uint64_t> got(kCount);
    const Rank next = (rank + 1) % kMembers;
    Countdown done(kRounds * (kMembers - 1) + 1);
    own.on_loop([&] {
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        put[round - 1].assign(kCount, round);
        for (Rank peer = 0; peer < kMembers; ++peer) {
          if (peer == rank) continue;
          own.regions->put(peer, {0, rank * kCount * sizeof(std::uint64_t)}, {}, bytes_of(put[round - 1]), done.done());
          own.regions->signal(peer, round);
        }
      }
      own.regions->get(next, {0, rank * kCount * sizeof(std::uint64_t)}, {}, room_of(got), done.done());
    });
    own.on_loop([&] { own.regions->add(0, room_of(own.memory)); });
    for (Rank peer = 0; peer < kMembers; ++peer) {
      if (peer == rank) continue;
      ASSERT_TRUE(own.until([&] { return own.regions->signalled(peer) == kRounds; }));
      EXPECT_TRUE(own.regions->one_sided(peer));
    }
    for (std::uint64_t i = 0; i < own.memory.size(); ++i) ASSERT_EQ(own.memory[i], i / kCount == rank ? 0 : kRounds) << i;
    ASSERT_TRUE(done.wait(jobs[rank]->transport()));
    EXPECT_TRUE(done.failures().empty());
    EXPECT_EQ(got, std::vector<std::uint64_t>(kCount, kRounds));
  });
  leave_all(jobs);
}

TEST(RegionsByUcx, one_member_that_did_not_ask_gets_what_it_is_sent_by_streams) {
  if (const std::string why = no_ucx(); !why.empty()) GTEST_SKIP() << why;
  InprocJob job(2);
  std::vector<std::uint64_t> memory(1000), values(1000, 3);
  Regions asks(job.member(0), kRegionsChannel, Regions::Puts::ucx), does_not(job.member(1), kRegionsChannel);
  does_not.add(0, room_of(memory));
  int left = 0;
  asks.put(1, {0, 0}, {}, bytes_of(values), expect_success(left));
  asks.signal(1, 1);
  EXPECT_TRUE(job.run([&] { return does_not.signalled(0) == 1; }));
  EXPECT_EQ(memory, values);
  EXPECT_FALSE(asks.one_sided(1));
}

// Whoever closes while others are still being connected neither ends them nor itself: one member in turn, or all at once; and every put ends.
TEST(RegionsByUcx, may_be_closed_as_soon_as_they_are_made) {
  if (const std::string why = no_ucx(); !why.empty()) GTEST_SKIP() << why;
  for (const Rank members : {Rank{2}, Rank{3}}) {
    auto jobs = join_all(members);
    each(members, [&](Rank rank) {
      for (std::uint16_t round = 0; round < 2 * (members + 1); ++round) {
        const std::vector<std::uint64_t> values(1, rank);
        std::atomic<Rank> ended{0};
        {
          OneSided own(jobs[rank]->transport(), members, static_cast<std::uint16_t>(kRegionsChannel + round));
          own.on_loop([&] {
            own.regions->add(0, room_of(own.memory));
            for (Rank peer = 0; peer < members; ++peer) {
              if (peer != rank) own.regions->put(peer, {0, rank * sizeof(std::uint64_t)}, {}, bytes_of(values), [&](const Failure&) { ++ended; });
            }
          });
          const Rank closes = round % (members + 1);  // the last: all
          if (closes == rank || closes == members) own.on_loop([&] { own.regions.reset(); });
        }
        ASSERT_TRUE(jobs[rank]->transport().drive([&] { return ended == members - 1; }, steady_now() + 20s));
      }
    });
    leave_all(jobs);
  }
}

TEST(RegionsByUcx, a_place_outside_ends_the_job_with_the_same_line) {
  if (const std::string why = no_ucx(); !why.empty()) GTEST_SKIP() << why;
  auto jobs = join_all(2);
  each(2, [&](Rank rank) {
    Transport& transport = jobs[rank]->transport();
    std::vector<std::byte> memory(8), values(4);
    std::unique_ptr<Regions> regions;
    transport.post([&] {
      regions = std::make_unique<Regions>(transport, kRegionsChannel, Regions::Puts::ucx);
      regions->add(1, memory);
      if (rank == 1) regions->put(0, {1, 5}, {}, values, [](const Failure&) {});
    });
    ASSERT_TRUE(transport.drive([&] { return transport.failure() != nullptr; }, steady_now() + 20s));
    EXPECT_NE(std::string(transport.failure()->what()).find("rank 1 reaches for 4 bytes from byte 5 of region 1 of rank 0, which has 8"), std::string::npos)
        << transport.failure()->what();
    Countdown gone(1);
    transport.post([&] {
      regions.reset();
      gone.done()(nullptr);
    });
    EXPECT_TRUE(gone.wait(transport));
  });
}

}  // namespace
}  // namespace shoal::net

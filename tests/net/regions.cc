// Memory that others put into and get from: the bytes, their order against signals, and the lines where a place does not exist.
// On the scripted network, where the seed decides who is late, and over real members of one host.
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

}  // namespace
}  // namespace shoal::net

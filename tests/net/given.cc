// Memory that is given between members of one host, over real connections: who takes it has it where it lies, whatever its size and however it is cut;
// who receives it has a copy; and it is free when nobody reads it any more.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "shoal/net/call.h"
#include "tests/net/members.h"

namespace shoal::net {
namespace {

constexpr std::uint64_t kOperation = 5;
const std::vector<std::size_t> kSizes = {1, 100, 4096, 40'000, 300'000, 5'000'000, 65'536, 262'145};

std::byte given_byte(std::size_t size, std::size_t i) { return static_cast<std::byte>((i ^ (i >> 8) ^ (i >> 16) * 7) + size); }
bool is_right(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != given_byte(bytes.size(), i)) return false;
  }
  return true;
}

// One of each size on each of two lanes; `free` counts those that nobody holds any more.
void give_all(Transport& transport, bool from_arena, const std::shared_ptr<std::atomic<int>>& free) {
  for (const std::size_t size : kSizes) {
    const auto lendable = transport.lendable(size);
    const std::shared_ptr<std::byte> memory = lendable && from_arena ? lendable : std::shared_ptr<std::byte>(new std::byte[size], std::default_delete<std::byte[]>());
    const Bytes bytes(std::shared_ptr<std::byte[]>(memory.get(), [memory, free](std::byte*) { ++*free; }), size);
    for (std::size_t i = 0; i < size; ++i) bytes.data()[i] = given_byte(size, i);
    transport.post([&transport, bytes] {
      for (const std::uint32_t lane : {0u, 1u}) transport.give(1, {kOperation, lane}, {}, bytes, [](const Failure& why) { EXPECT_FALSE(why); });
    });
  }
}

// Goal: as above. Method: rank 1 takes what comes on one lane and receives the other, while rank 0 sends as fast as it can.
TEST(Given, arrives_where_it_lies_and_comes_back) {
  for (const auto& [shared, from_arena] : std::vector<std::pair<bool, bool>>{{true, true}, {true, false}, {false, true}}) {
    SCOPED_TRACE(testing::Message() << shared << from_arena);
    JoinOptions options = quick();
    options.shared_memory = shared;
    const auto jobs = join_all(2, options);
    const auto free = std::make_shared<std::atomic<int>>(0);
    std::vector<Bytes> taken, received;
    each(2, [&](Rank rank) {
      Transport& transport = jobs[rank]->transport();
      if (rank == 0) return give_all(transport, from_arena, free);
      std::atomic<std::size_t> came{0};
      transport.post([&] {
        for (const std::size_t size : kSizes) {
          transport.take(0, {kOperation, 0}, {}, size, [&](const Failure& why, Bytes bytes) {
            EXPECT_FALSE(why);
            taken.push_back(std::move(bytes));
            ++came;
          });
          const Bytes into(size);
          transport.receive(0, {kOperation, 1}, {}, into, [&, into](const Failure& why) {
            EXPECT_FALSE(why);
            received.push_back(into);
            ++came;
          });
        }
      });
      EXPECT_TRUE(wait_for(transport, [&] { return came == 2 * kSizes.size(); }, std::chrono::seconds(20)));
    });
    for (const auto& all : {taken, received}) {
      ASSERT_EQ(all.size(), kSizes.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].size(), kSizes[i]);
        EXPECT_TRUE(is_right(all[i]));
      }
    }
    const bool in_place = shared && from_arena;
    EXPECT_TRUE(wait_for(jobs[0]->transport(), [&] { return *free == static_cast<int>(in_place ? 0 : kSizes.size()); }, std::chrono::seconds(20)));
    taken.clear();
    EXPECT_TRUE(wait_for(jobs[0]->transport(), [&] { return *free == static_cast<int>(kSizes.size()); }, std::chrono::seconds(20)));
  }
}

// Goal: who gave and has left, job and all, has not taken with it what others read.
TEST(Given, stays_when_the_giver_leaves) {
  auto jobs = join_all(2);
  const auto free = std::make_shared<std::atomic<int>>(0);
  give_all(jobs[0]->transport(), true, free);
  std::vector<Bytes> taken;
  std::atomic<std::size_t> came{0};
  Transport& transport = jobs[1]->transport();
  transport.post([&] {
    for (const std::size_t size : kSizes) {
      transport.take(0, {kOperation, 0}, {}, size, [&](const Failure&, Bytes bytes) {
        taken.push_back(std::move(bytes));
        ++came;
      });
      const Bytes into(size);
      transport.receive(0, {kOperation, 1}, {}, into, [&, into](const Failure&) { ++came; });
    }
  });
  ASSERT_TRUE(wait_for(transport, [&] { return came == 2 * kSizes.size(); }, std::chrono::seconds(20)));
  each(2, [&](Rank rank) { jobs[rank].reset(); });
  EXPECT_EQ(*free, 0);
  for (const Bytes& bytes : taken) EXPECT_TRUE(is_right(bytes));
}

}  // namespace
}  // namespace shoal::net

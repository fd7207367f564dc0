// The ring in shared memory: bytes come out as they went in, whoever is faster; a writer or reader that counts wrongly gets nothing.
#include "shoal/net/ring.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

namespace shoal::net {
namespace {

struct Memory {
  std::atomic<std::uint64_t> written{0}, read{0};
  alignas(64) std::array<std::byte, 4096> bytes{};
  RingWriter writer() { return {bytes, written, read}; }
  RingReader reader() { return {bytes, written, read}; }
};

std::byte at(std::uint64_t position) { return static_cast<std::byte>(position * 2654435761u >> 13); }

// The byte at each position of the stream is a function of the position: that is the oracle. Both sides cut at random, often
// in pieces larger than the ring, and go around it a thousand times.
TEST(Ring, two_threads_and_random_cuts) {
  Memory memory;
  constexpr std::uint64_t kBytes = 4'000'000;
  std::thread writing([&] {
    RingWriter ring = memory.writer();
    std::mt19937 random(1);
    std::vector<std::byte> piece;
    for (std::uint64_t done = 0; done < kBytes;) {
      piece.resize(std::min<std::uint64_t>(1 + random() % 6000, kBytes - done));
      for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = at(done + i);
      for (std::size_t left = 0; left < piece.size();) {
        const std::size_t size = ring.write(std::span(piece).subspan(left));
        if (size == 0) std::this_thread::yield();
        left += size;
      }
      done += piece.size();
    }
  });
  RingReader ring = memory.reader();
  std::mt19937 random(2);
  std::vector<std::byte> piece;
  std::uint64_t done = 0, wrong = 0;
  while (done < kBytes) {
    piece.resize(1 + random() % 6000);
    const std::size_t size = ring.read(piece);
    if (size == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < size; ++i) wrong += piece[i] != at(done + i);
    done += size;
  }
  writing.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(done, kBytes);
  EXPECT_FALSE(ring.broken());
}

TEST(Ring, takes_no_more_than_it_holds) {
  Memory memory;
  RingWriter in = memory.writer();
  RingReader out = memory.reader();
  std::vector<std::byte> bytes(5000, std::byte{1});
  EXPECT_EQ(in.write(bytes), 4096u);
  EXPECT_EQ(in.write(bytes), 0u);
  EXPECT_EQ(out.read(std::span(bytes).first(10)), 10u);
  EXPECT_EQ(in.write(bytes), 10u);
  EXPECT_EQ(out.read(bytes), 4096u);
  EXPECT_EQ(out.read(bytes), 0u);
}

TEST(Ring, positions_that_cannot_be_move_nothing) {
  Memory memory;
  std::vector<std::byte> bytes(100);
  memory.read = 1;  // more than was ever written
  RingWriter in = memory.writer();
  EXPECT_EQ(in.write(bytes), 0u);
  for (const std::uint64_t claimed : {std::uint64_t{4097}, UINT64_MAX}) {
    memory.written = claimed;
    RingReader out = memory.reader();
    EXPECT_EQ(out.read(bytes), 0u);
    EXPECT_TRUE(out.broken());
  }
}

}  // namespace
}  // namespace shoal::net

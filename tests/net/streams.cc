// Bytes arrive as they were sent, however sender and receiver cut the stream and whoever comes first.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>

#include "members.h"
#include "tests/core/like_gradients.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint32_t x = seed * 2654435761u + 1;
  for (std::byte& b : bytes) b = static_cast<std::byte>((x = x * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// Numbers like a gradient's, and some bytes that make no number at the end.
std::vector<std::byte> gradient(std::size_t size, std::uint32_t seed) {
  const auto values = like_gradients(size / sizeof(float), 0.2, seed);
  std::vector<std::byte> bytes = pattern(size, seed);
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(float));
  return bytes;
}

// whole: pieces are multiples of it, but for the last one.
std::vector<std::size_t> cuts(std::size_t size, std::mt19937& random, std::size_t longest, std::size_t whole) {
  std::vector<std::size_t> pieces;
  while (size > 0) {
    const std::size_t piece = std::min<std::size_t>(size, whole * (1 + random() % longest / whole));
    pieces.push_back(piece);
    size -= piece;
  }
  return pieces;
}

// Goal: the oracle is the pattern itself. Every ordered pair runs several streams of several sizes at once, each side
// cutting at random, receives posted before or after the bytes come.
void exchange(Rank size, std::uint32_t seed, std::size_t longest_piece, const std::vector<std::size_t>& sizes, Packing packing = Packing::never) {
  SCOPED_TRACE("size " + std::to_string(size) + " seed " + std::to_string(seed));
  const auto content = packing == Packing::never ? pattern : gradient;
  JoinOptions options = quick();
  options.packing = packing;
  options.shared_memory = packing == Packing::never;
  auto jobs = join_all(size, options);
  each(size, [&](Rank rank) {
    Transport& transport = jobs[rank]->transport();
    std::mt19937 random(seed + rank);
    std::vector<std::vector<std::byte>> out, in, want;
    struct Piece {
      bool send;
      Rank peer;
      Tag tag;
      Priority priority;
      std::size_t stream, offset, length;
    };
    std::vector<std::vector<Piece>> streams;
    for (Rank peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      for (std::size_t lane = 0; lane < sizes.size(); ++lane) {
        const std::size_t bytes = sizes[lane];
        const Tag tag{7, static_cast<std::uint32_t>(lane)};
        const bool urgent = bytes <= 8192;
        const Priority priority{urgent ? Class::urgent : lane % 3 ? Class::bulk : Class::background, static_cast<std::uint32_t>(lane), 0};
        out.push_back(content(bytes, rank * 1000 + peer * 100 + static_cast<std::uint32_t>(lane)));
        want.push_back(content(bytes, peer * 1000 + rank * 100 + static_cast<std::uint32_t>(lane)));
        in.emplace_back(bytes);
        for (const bool send : {true, false}) {
          std::vector<Piece> pieces;
          std::size_t offset = 0;
          for (const std::size_t piece : cuts(bytes, random, urgent ? kUrgentLimit : longest_piece, packing == Packing::never ? 1 : sizeof(float))) {
            pieces.push_back({send, peer, tag, priority, out.size() - 1, offset, piece});
            offset += piece;
          }
          streams.push_back(std::move(pieces));
        }
      }
    }
    // Interleave the streams at random; inside a stream order stays.
    std::vector<Piece> all;
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < streams.size(); ++s) order.insert(order.end(), streams[s].size(), s);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::size_t> next(streams.size());
    for (const std::size_t s : order) all.push_back(streams[s][next[s]++]);

    Countdown done(static_cast<int>(all.size()));
    for (const Piece& piece : all) {
      transport.post([&, piece] {
        if (piece.send) {
          transport.send(piece.peer, piece.tag, piece.priority, std::span(out[piece.stream]).subspan(piece.offset, piece.length), done.done());
        } else {
          transport.receive(piece.peer, piece.tag, piece.priority, std::span(in[piece.stream]).subspan(piece.offset, piece.length), done.done());
        }
      });
    }
    ASSERT_TRUE(done.wait(transport));
    EXPECT_TRUE(done.failures().empty());
    for (std::size_t s = 0; s < in.size(); ++s) EXPECT_TRUE(in[s] == want[s]) << "stream " << s << " at rank " << rank;
    const LinkStats link = transport.link((rank + 1) % size);
    EXPECT_EQ(link.sent, std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
    if (packing != Packing::always) {
      EXPECT_EQ(link.saved, 0U);
    } else if (longest_piece > 64 * 1024) {
      EXPECT_GT(link.saved, link.sent / 5);
      EXPECT_LT(link.wire_sent, link.sent - link.saved + link.sent / 50);
    }
  });
  leave_all(jobs);
}

TEST(Streams, a_byte_crosses) { exchange(2, 1, 1, {1}); }
TEST(Streams, random_cuts_give_the_same_bytes) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) exchange(3, seed, 100'000, {1, 4096, 65'537, 300'000, 2'000'003});
}
TEST(Streams, five_members_and_many_small_streams) { exchange(5, 9, 3000, std::vector<std::size_t>(24, 9001)); }
TEST(Streams, large_streams_in_large_pieces) { exchange(2, 4, 64 << 20, {8 << 20, 5 << 20}); }

TEST(Streams, come_packed_as_they_were_sent) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) exchange(3, seed, 100'000, {1, 65'537, 300'000, 2'000'003}, Packing::always);
  exchange(2, 4, 64 << 20, {8 << 20, 5 << 20}, Packing::always);
  exchange(2, 5, 3000, std::vector<std::size_t>(24, 9001), Packing::always);  // frames, receives and what comes before its receive, in pieces
  exchange(2, 6, 64 << 20, {8 << 20, 5 << 20}, Packing::automatic);           // over loopback there is no link
}

TEST(Streams, one_member_has_a_loop_and_no_network) {
  auto jobs = join_all(1);
  Transport& transport = jobs[0]->transport();
  std::atomic<int> steps{0};
  transport.post([&] {
    EXPECT_TRUE(transport.on_loop());
    ++steps;
    transport.at(transport.now() + 1ms, [&] { ++steps; });
    transport.cancel(transport.at(transport.now() + 1ms, [&] { steps += 100; }));
  });
  EXPECT_TRUE(transport.drive([&] { return steps == 2; }, steady_now() + 10s));
  EXPECT_FALSE(transport.drive([] { return false; }, steady_now() + 5ms));
  EXPECT_EQ(steps, 2);
}

// Thousands of operations that nobody closes: streams that are forgotten on one side or both start anew.
TEST(Streams, many_operations_without_close) {
  auto jobs = join_all(2);
  each(2, [&](Rank rank) {
    Transport& transport = jobs[rank]->transport();
    for (std::uint64_t operation = 0; operation < 10'000; ++operation) {
      std::uint64_t mine = operation, theirs = 0;
      Countdown done(2);
      transport.post([&] {
        const Tag tag{operation % 7000, 0};
        transport.receive(1 - rank, tag, {}, std::as_writable_bytes(std::span(&theirs, 1)), done.done());
        transport.send(1 - rank, tag, {}, std::as_bytes(std::span(&mine, 1)), done.done());
      });
      ASSERT_TRUE(done.wait(transport)) << operation;
      ASSERT_EQ(theirs, operation);
    }
  });
  leave_all(jobs);
}

}  // namespace
}  // namespace shoal::net

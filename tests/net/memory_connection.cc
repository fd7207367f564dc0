// A connection through memory, both ends in the hands of the test: frames cross however large the ring is, each side is woken exactly
// when it sleeps and there is something for it, and bytes that are no frame end it.
#include "shoal/net/memory_connection.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>

namespace shoal::net {
namespace {

const Post kLater = [](const std::function<void()>&) {};  // look() does it

class Frames final : public ConnectionUser {
 public:
  std::deque<OutFrame> to_send;
  std::vector<std::vector<std::byte>> came;
  std::uint64_t consumed = 0;  // of the last message of credit
  std::error_code why;
  int written = 0, lent = 0;  // frames
  bool keeps = false;
  std::vector<std::pair<std::span<const std::byte>, Loan>> kept;
  std::size_t bytes_taken = 0;

  void offer(std::span<const std::byte> payload) {
    OutFrame frame;
    frame.header = wire::encode(wire::Header{.kind = wire::Kind::data, .length = static_cast<std::uint32_t>(payload.size()), .tag = {1, 2}});
    frame.payload = payload;
    frame.data = true;
    frame.tag = {1, 2};
    to_send.push_back(std::move(frame));
  }

 private:
  bool next_frame(wire::Channel, OutFrame& frame) override {
    if (to_send.empty()) return false;
    frame = std::move(to_send.front());
    to_send.pop_front();
    return true;
  }
  void frame_written(wire::Channel, OutFrame& frame) override {
    ++written;
    lent += frame.lent;
  }
  bool data_begins(wire::Channel, const wire::Header& header) override {
    EXPECT_LE(header.length, wire::kMaxFrame);
    came.emplace_back(header.length);
    at_ = 0;
    return true;
  }
  std::size_t plan(wire::Channel, std::span<iovec> into) override {
    into[0] = {came.back().data() + at_, came.back().size() - at_};
    return 1;
  }
  void took(wire::Channel, std::size_t bytes) override {
    at_ += bytes;
    bytes_taken += bytes;
  }
  bool message(wire::Channel, const wire::Header& header, std::span<const std::byte> payload) override {
    EXPECT_EQ(payload.size(), header.length);
    if (const auto credit = wire::decode_credit(payload)) consumed = credit->consumed;
    return true;
  }
  bool keep(std::span<const std::byte> payload, Loan loan) override {
    if (!keeps) return false;
    kept.emplace_back(payload, std::move(loan));
    return true;
  }
  void wire_bytes(std::size_t, std::size_t) override {}
  void ended(wire::Channel, std::error_code reason) override { why = reason; }

  std::size_t at_ = 0;
};

// What one side makes, and the other side's view of it.
struct Made {
  OwnSegment own;
  OtherSegment seen;
  Descriptor bell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  explicit Made(const Arena* arena = nullptr) {
    const Mailbox mailbox;
    EXPECT_EQ(own.pass(mailbox.name(), bell.get(), arena ? arena->descriptor() : -1), "");
    EXPECT_EQ(mailbox.take(own.number(), seen), "");
  }
  bool rung() const {
    eventfd_t times = 0;
    return eventfd_read(bell.get(), &times) == 0;
  }
};

struct Pair {
  Made by_a, by_b;
  Frames a_user, b_user;
  MemoryConnection a{std::move(by_a.own), std::move(by_b.seen), a_user, kLater};
  MemoryConnection b{std::move(by_b.own), std::move(by_a.seen), b_user, kLater};
};

// One side lends from an arena, in which there is room for so many of the largest frames.
struct Lending {
  explicit Lending(std::size_t frames) : memory(arena.allocate(frames * wire::kMaxFrame)) { a->lend_from(arena); }
  ~Lending() {
    if (memory) arena.free(memory);
  }

  Arena arena;
  Made by_a{&arena}, by_b;
  Frames a_user, b_user;
  std::optional<MemoryConnection> a{std::in_place, std::move(by_a.own), std::move(by_b.seen), a_user, kLater};
  MemoryConnection b{std::move(by_b.own), std::move(by_a.seen), b_user, kLater};
  std::byte* const memory;
};

TEST(MemoryConnection, frames_cross_that_are_together_larger_than_the_ring) {
  Pair pair;
  std::mt19937 random(5);
  std::vector<std::vector<std::byte>> sent;
  for (int i = 0; i < 40; ++i) {
    sent.emplace_back(1 + random() % wire::kMaxFrame);
    for (std::byte& b : sent.back()) b = static_cast<std::byte>(random());
  }
  for (const auto& payload : sent) pair.a_user.offer(payload);
  pair.a_user.to_send.push_back(owned_frame(wire::Header{.kind = wire::Kind::credit, .length = 8, .tag = {}}, wire::encode(wire::Credit{77, {}})));
  pair.a.pump();
  EXPECT_TRUE(pair.a.writing());
  while (pair.b.look()) pair.a.look();
  EXPECT_FALSE(pair.a.writing());
  EXPECT_TRUE(pair.b_user.came == sent);
  EXPECT_EQ(pair.b_user.consumed, 77u);
  EXPECT_FALSE(pair.b_user.why);
}

TEST(MemoryConnection, rings_only_for_one_that_sleeps) {
  Pair pair;
  const std::vector<std::byte> small(100), large(wire::kMaxFrame);
  pair.a_user.offer(small);
  pair.a.pump();
  EXPECT_FALSE(pair.by_b.rung());
  pair.b.asleep(true);
  EXPECT_TRUE(pair.b.look());  // what had come before it said so
  pair.a_user.offer(small);
  pair.a_user.offer(small);
  pair.a.pump();
  EXPECT_TRUE(pair.by_b.rung());
  pair.a_user.offer(small);
  pair.a.pump();
  EXPECT_FALSE(pair.by_b.rung());  // it is on its way
  pair.b.asleep(false);
  while (pair.b.look()) {
  }
  for (int i = 0; i < 2; ++i) pair.a_user.offer(large);
  pair.a.pump();
  EXPECT_TRUE(pair.a.writing());
  EXPECT_FALSE(pair.by_a.rung());
  pair.a.asleep(true);
  EXPECT_TRUE(pair.b.look());
  EXPECT_TRUE(pair.by_a.rung());  // there is room again
}

TEST(MemoryConnection, a_frame_that_waits_is_detached_with_a_copy) {
  Pair pair;
  std::vector<std::byte> payload(wire::kMaxFrame, std::byte{1});
  const std::vector<std::byte> as_sent = payload;
  int taken = 0;
  for (int i = 0; i < 2; ++i) {
    pair.a_user.offer(payload);
    pair.a_user.to_send.back().done = [](const Failure&) {};
  }
  pair.a.pump();
  ASSERT_TRUE(pair.a.writing());
  pair.a.detach(9, [&](const Done&) { ++taken; });
  EXPECT_EQ(taken, 0);
  pair.a.detach(1, [&](const Done&) { ++taken; });
  EXPECT_EQ(taken, 1);
  std::fill(payload.begin(), payload.end(), std::byte{2});
  while (pair.b.look() || pair.a.look()) {
  }
  ASSERT_GE(pair.b_user.came.size(), 1u);
  EXPECT_TRUE(pair.b_user.came[0] == as_sent);
}

// Goal: large frames of an arena cross without their bytes in the ring, beside others, and count as written only when they have been read; an
// operation that has ended no longer waits. Method: one side offers what is larger than the ring many times over.
TEST(MemoryConnection, what_lies_in_an_arena_is_read_there) {
  constexpr std::size_t kFrames = 64, kSmall = 100;
  Lending on(kFrames);
  ASSERT_NE(on.memory, nullptr);
  std::mt19937 random(6);
  std::vector<std::vector<std::byte>> sent;
  const std::vector<std::byte> elsewhere(wire::kMaxFrame / 2, std::byte{9});
  for (std::size_t i = 0; i < kFrames; ++i) {
    const std::span frame(on.memory + i * wire::kMaxFrame, i % 7 == 3 ? kSmall : wire::kMaxFrame);
    for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
    sent.emplace_back(frame.begin(), frame.end());
    on.a_user.offer(frame);
  }
  sent.push_back(elsewhere);
  on.a_user.offer(elsewhere);
  on.a->pump();
  EXPECT_TRUE(on.a_user.to_send.empty());  // all fit into the ring: it holds the small ones, and where the others are
  EXPECT_EQ(on.a_user.written, 0);         // the small ones too: they may be the ends of what is still to be read
  int taken = 0;
  on.a->asleep(true);
  EXPECT_TRUE(on.b.look());
  EXPECT_TRUE(on.by_a.rung());
  while (on.b.look() || on.a->look()) {
  }
  EXPECT_TRUE(on.b_user.came == sent);
  EXPECT_EQ(on.a_user.written, 65);
  EXPECT_EQ(on.a_user.lent, 55);
  EXPECT_FALSE(on.a->writing());

  on.a_user.offer({on.memory, wire::kMaxFrame});
  on.a_user.to_send.back().done = [](const Failure&) {};
  on.a->pump();
  EXPECT_TRUE(on.a->writing());
  on.a->detach(1, [&](const Done&) { ++taken; });
  EXPECT_EQ(taken, 1);
  while (on.b.look() || on.a->look()) {
  }
  EXPECT_FALSE(on.a->writing());
  EXPECT_FALSE(on.b_user.why);
}

// Goal: a send whose operation ends while the other has not read it leaves its memory alone until then. Method: its handler, which holds on to what would give
// that back, comes with the last frame, a copied one behind a lent one.
TEST(MemoryConnection, what_a_handler_holds_stays_until_it_is_read) {
  Lending on(1);
  ASSERT_NE(on.memory, nullptr);
  auto holds = std::make_shared<int>();
  const std::weak_ptr<int> held = holds;
  constexpr std::size_t kEnd = 50;
  on.a_user.offer({on.memory, wire::kMaxFrame - kEnd});
  on.a_user.offer({on.memory + wire::kMaxFrame - kEnd, kEnd});
  on.a_user.to_send.back().done = [holds = std::move(holds)](const Failure&) {};
  on.a->pump();
  int told = 0;
  on.a->detach(1, [&](const Done&) { ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(held.expired());
  while (on.b.look() || on.a->look()) {
  }
  EXPECT_EQ(on.b_user.bytes_taken, wire::kMaxFrame);
  EXPECT_TRUE(held.expired());
  EXPECT_FALSE(on.a->writing());
}

TEST(MemoryConnection, what_one_lent_that_has_gone_is_not_taken) {
  Lending on(1);
  ASSERT_NE(on.memory, nullptr);
  for (int frame = 0; frame < 2; ++frame) {
    on.a_user.offer({on.memory, wire::kMaxFrame});
    on.a->pump();
    if (frame == 0) on.b.look();
  }
  on.a.reset();
  std::fill_n(on.memory, wire::kMaxFrame, std::byte{7});
  while (on.b.look()) {
  }
  EXPECT_EQ(on.b_user.bytes_taken, wire::kMaxFrame);  // the first
  EXPECT_FALSE(on.b_user.why);                        // the control connection says it
}

// Goal: what was given is kept by who wants it so, whole frames and the small end alike, and stays the giver's until it comes back, in whatever order; what
// nobody keeps is copied and comes back at once. Method: frames of one piece of memory, whose holder the test watches.
TEST(MemoryConnection, what_was_given_stays_until_it_is_returned) {
  constexpr std::size_t kFrames = 5, kEnd = 50;
  for (const bool keeps : {true, false}) {
    SCOPED_TRACE(keeps);
    Lending on(kFrames);
    ASSERT_NE(on.memory, nullptr);
    std::mt19937 random(8);
    std::generate_n(on.memory, kFrames * wire::kMaxFrame, [&] { return static_cast<std::byte>(random()); });
    std::shared_ptr<std::byte[]> holder(on.memory, [](std::byte*) {});
    const std::weak_ptr<std::byte[]> held = holder;
    const Bytes all(std::exchange(holder, nullptr), (kFrames - 1) * wire::kMaxFrame + kEnd);
    const std::vector<std::byte> as_given(all.begin(), all.end());
    on.b_user.keeps = keeps;
    for (std::size_t i = 0; i < kFrames; ++i) {
      on.a_user.offer(std::span<const std::byte>(all).subspan(i * wire::kMaxFrame, i + 1 < kFrames ? wire::kMaxFrame : kEnd));
      on.a_user.to_send.back().given = all;
    }
    const_cast<Bytes&>(all) = {};
    on.a->pump();
    EXPECT_FALSE(held.expired());
    while (on.b.look() || on.a->look()) {
    }
    EXPECT_EQ(on.a_user.written, kFrames);  // and yet
    std::vector<std::byte> came;
    for (const auto& [payload, loan] : on.b_user.kept) came.insert(came.end(), payload.begin(), payload.end());
    for (const auto& payload : on.b_user.came) came.insert(came.end(), keeps ? payload.end() : payload.begin(), payload.end());
    EXPECT_TRUE(came == as_given);
    if (keeps) {
      ASSERT_EQ(on.b_user.kept.size(), kFrames);
      for (const std::size_t first : {3, 0, 1, 1, 0}) {
        EXPECT_FALSE(held.expired());
        on.b_user.kept.erase(on.b_user.kept.begin() + static_cast<std::ptrdiff_t>(first));
        on.b.pump();
        while (on.a->look()) {
        }
      }
    } else {
      on.b.pump();
      while (on.a->look()) {
      }
    }
    EXPECT_TRUE(held.expired());
    EXPECT_FALSE(on.a_user.why);
    EXPECT_FALSE(on.b_user.why);
  }
}

// Goal: a giver that goes in order leaves what others still read as it is; one whose other side is lost does not.
TEST(MemoryConnection, what_was_given_outlives_the_giver) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost);
    Lending on(1);
    ASSERT_NE(on.memory, nullptr);
    std::fill_n(on.memory, wire::kMaxFrame, std::byte{7});
    bool is_free = false;
    on.b_user.keeps = true;
    on.a_user.offer({on.memory, wire::kMaxFrame});
    on.a_user.to_send.back().given = Bytes(std::shared_ptr<std::byte[]>(on.memory, [&is_free](std::byte*) { is_free = true; }), wire::kMaxFrame);
    on.a->pump();
    while (on.b.look() || on.a->look()) {
    }
    if (lost) on.a->forget();
    on.a.reset();
    EXPECT_EQ(is_free, lost);
    ASSERT_EQ(on.b_user.kept.size(), 1u);
    EXPECT_TRUE(std::ranges::all_of(on.b_user.kept[0].first, [](std::byte byte) { return byte == std::byte{7}; }));
  }
}

TEST(MemoryConnection, what_was_not_given_cannot_come_back) {
  const std::vector<std::vector<wire::Returned>> wrong = {{{0, 1}}, {{1, 0}}, {{0, ~std::uint64_t{0}}}, {{~std::uint64_t{0}, 2}}};
  for (const auto& returned : wrong) {
    Made by_a, by_b;
    Shared& ring = *by_a.seen.shared;
    RingWriter out(ring.ring, ring.written, ring.read);
    Frames user;
    MemoryConnection b(std::move(by_b.own), std::move(by_a.seen), user, kLater);
    const std::string payload = wire::encode(returned);
    out.write(wire::encode(wire::Header{.kind = wire::Kind::returned, .length = static_cast<std::uint32_t>(payload.size()), .tag = {}}));
    out.write(std::as_bytes(std::span(payload)));
    while (b.look()) {
    }
    EXPECT_EQ(user.why, std::errc::protocol_error);
  }
}

TEST(MemoryConnection, a_place_outside_of_the_arena_ends_it) {
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{kArenaBytes - 50}, ~std::uint64_t{0}}) {
    Arena arena;
    Made by_a(offset == 0 ? nullptr : &arena), by_b;
    Shared& ring = *by_a.seen.shared;
    RingWriter out(ring.ring, ring.written, ring.read);
    Frames user;
    MemoryConnection b(std::move(by_b.own), std::move(by_a.seen), user, kLater);
    const auto header = wire::encode(wire::Header{.kind = wire::Kind::data, .lent = true, .length = 100, .tag = {1, 2}});
    out.write(header);
    out.write(std::as_bytes(std::span(&offset, 1)));
    while (b.look()) {
    }
    EXPECT_EQ(user.why, std::errc::protocol_error);
  }
}

// Whatever lies in the ring, sizes are checked before anything is made for them, and what is no frame ends the connection.
TEST(MemoryConnection, random_bytes_end_it) {
  std::mt19937_64 random(20261122);
  int ended = 0;
  for (int round = 0; round < 500; ++round) {
    Made by_a, by_b;
    Shared& ring = *by_a.seen.shared;
    RingWriter garbage(ring.ring, ring.written, ring.read);
    Frames user;
    MemoryConnection b(std::move(by_b.own), std::move(by_a.seen), user, kLater);
    std::vector<std::byte> bytes(4096);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (round % 2) {  // begins as a frame that might be
      const auto header = wire::encode(wire::Header{.kind = wire::Kind::data, .length = static_cast<std::uint32_t>(1 + random() % 4000), .tag = {1, 2}});
      std::copy(header.begin(), header.end(), bytes.begin());
    }
    garbage.write(bytes);
    while (b.look()) {
    }
    ended += user.why == std::errc::protocol_error;
    EXPECT_FALSE(b.look());
  }
  EXPECT_GT(ended, 400);
}

}  // namespace
}  // namespace shoal::net

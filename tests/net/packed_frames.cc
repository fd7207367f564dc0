// Packed frames at one end of a connection, whose other end the test writes: they come in any pieces, go into any receives, and what is none ends it.
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/write.hpp>
#include <vector>

#include "shoal/core/packed_words.h"
#include "shoal/net/connection.h"
#include "tests/core/like_gradients.h"

namespace shoal::net {
namespace {

// Takes everything into one piece of memory, in pieces of at most so many bytes.
class Taker final : public ConnectionUser {
 public:
  explicit Taker(std::size_t piece) : piece_(piece) {}
  std::vector<std::byte> came;
  std::error_code why;
  bool over = false;

 private:
  bool next_frame(wire::Channel, OutFrame&) override { return false; }
  void frame_written(wire::Channel, OutFrame&) override {}
  bool data_begins(wire::Channel, const wire::Header& header) override {
    EXPECT_EQ(left_, 0U);
    left_ = header.length;
    came.resize(came.size() + left_);
    return true;
  }
  std::size_t plan(wire::Channel, std::span<iovec> into) override {
    std::size_t planned = 0, count = 0;
    for (; count < into.size() && planned < left_; ++count) {
      const std::size_t size = std::min(piece_, left_ - planned);
      into[count] = {came.data() + came.size() - left_ + planned, size};
      planned += size;
    }
    return count;
  }
  void took(wire::Channel, std::size_t bytes) override {
    left_ -= bytes;
  }
  bool keep(std::span<const std::byte>, Loan) override { return false; }
  bool message(wire::Channel, const wire::Header&, std::span<const std::byte>) override { return true; }
  void wire_bytes(std::size_t, std::size_t) override {}
  void ended(wire::Channel, std::error_code reason) override {
    why = reason;
    over = true;
  }

  const std::size_t piece_;
  std::size_t left_ = 0;
};

std::vector<std::byte> frame(std::size_t length, std::span<const std::byte> payload, bool packed) {
  const auto header = wire::encode(wire::Header{.length = static_cast<std::uint32_t>(length),
                                                .packed = static_cast<std::uint32_t>(packed ? payload.size() : 0),
                                                .tag = {1, 2}});
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

// What comes of these bytes, written in pieces, when the writer has left.
void write_to(Taker& taker, std::span<const std::byte> bytes, std::size_t piece) {
  asio::io_context loop;
  asio::ip::tcp::acceptor door(loop, Endpoint(asio::ip::address_v4::loopback(), 0));
  Socket writer(loop), reader(loop);
  writer.connect(door.local_endpoint());
  door.accept(reader);
  const auto connection = std::make_shared<Connection>(std::move(reader), wire::Channel::bulk, taker);
  connection->start();
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    std::error_code refused;  // who has seen enough hangs up
    asio::write(writer, asio::buffer(bytes.data() + at, std::min(piece, bytes.size() - at)), refused);
    loop.restart();
    loop.poll();
  }
  writer.close();
  loop.restart();
  while (!taker.over && loop.run_one() > 0) {
  }
  connection->close();
}

std::vector<std::byte> packed(std::span<const std::byte> bytes) {
  std::vector<std::byte> into(room_to_pack(bytes.size()));
  into.resize(pack_words(bytes, into.data()));
  EXPECT_FALSE(into.empty());
  return into;
}

TEST(PackedFrames, come_in_any_pieces_and_go_into_any_receives) {
  const auto values = like_gradients(5000, 0.25);
  const auto bytes = std::as_bytes(std::span(values));
  std::vector<std::byte> all;
  for (const auto& one : {frame(bytes.size(), packed(bytes), true), frame(bytes.size(), bytes, false), frame(1024, packed(bytes.first(1024)), true),
                          frame(bytes.size(), packed(bytes), true)}) {
    all.insert(all.end(), one.begin(), one.end());
  }
  for (const std::size_t written : {1U, 41U, 1000U, 70'000U}) {
    for (const std::size_t taken : {7U, 1000U, 70'000U}) {
      Taker taker(taken);
      write_to(taker, all, written);
      EXPECT_FALSE(taker.why) << taker.why.message();
      std::vector<std::byte> expected;
      for (const std::size_t size : {bytes.size(), bytes.size(), std::size_t{1024}, bytes.size()}) {
        expected.insert(expected.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      }
      EXPECT_TRUE(taker.came == expected) << written << " and " << taken;
    }
  }
}

TEST(PackedFrames, that_are_none_end_the_connection) {
  const auto values = like_gradients(5000, 0.25);
  const auto bytes = std::as_bytes(std::span(values));
  auto wrong = packed(bytes);
  wrong[1] = std::byte{9};
  auto shorter = packed(bytes);
  shorter.pop_back();
  for (const auto& payload : {wrong, shorter}) {
    Taker taker(70'000);
    write_to(taker, frame(bytes.size(), payload, true), 70'000);
    EXPECT_EQ(taker.why, std::errc::protocol_error);
  }
}

}  // namespace
}  // namespace shoal::net

// Messages arrive whole and in the order in which they were sent, whatever their lengths and whatever the network does.
#include "shoal/net/mail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "shoal/net/inproc.h"

namespace shoal::net {
namespace {

struct Header {
  std::uint32_t length = 0, lane = 0;
  std::uint64_t number = 0;
};
struct Message {
  Header header;
  Bytes body;
};
struct Numbered {
  static constexpr std::uint32_t lanes = 2;
  static std::uint32_t lane_of(const Header& header) { return header.lane; }
  static std::string fault_of(const Header& header, std::uint32_t lane) { return header.lane == lane ? "" : "a message on the wrong lane"; }
};

Message message_of(std::uint64_t number, std::uint32_t length, std::uint32_t lane) {
  Message message{{length, lane, number}, Bytes(length)};
  std::ranges::fill(message.body, static_cast<std::byte>(number));
  return message;
}

// Goal: two members send each other 60 messages on each of two lanes, from none to 640,000 bytes long, so that some are short, some long
// and more than may be under way wait; each lane is received in order, with its bytes.
TEST(Mail, long_and_short_messages_keep_their_order) {
  constexpr std::uint64_t kCount = 60;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    InprocJob job(2, {.seed = seed});
    std::uint64_t received[2][2] = {};
    bool was_drained[2] = {};
    std::unique_ptr<Mail<Message, Numbered>> mail[2];
    std::vector<std::uint32_t> lengths(kCount);
    for (std::uint32_t& length : lengths) length = std::vector<std::uint32_t>{0, 16, 1024, 1040, 16000, 640000}[random() % 6];
    for (Rank rank = 0; rank < 2; ++rank) {
      const auto deliver = [&, rank](Rank from, const Message& message) {
        EXPECT_EQ(from, 1 - rank);
        std::uint64_t& next = received[rank][message.header.lane];
        EXPECT_EQ(message.header.number, next);
        EXPECT_EQ(message.body.size(), lengths[next]);
        EXPECT_TRUE(std::ranges::all_of(message.body, [&](std::byte byte) { return byte == static_cast<std::byte>(next); }));
        ++next;
      };
      const auto drained = [&, rank](Rank to) {
        EXPECT_EQ(mail[rank]->unsent(to), 0u);
        was_drained[rank] = true;
      };
      mail[rank] = std::make_unique<Mail<Message, Numbered>>(job.member(rank), std::uint16_t{5}, "letters", deliver, drained);
    }
    for (Rank rank = 0; rank < 2; ++rank) {
      for (std::uint64_t number = 0; number < kCount; ++number) {
        for (const std::uint32_t lane : {0u, 1u}) {
          std::vector<Message> one;
          one.push_back(message_of(number, lengths[number], lane));
          mail[rank]->send(1 - rank, std::move(one));
        }
      }
    }
    const auto all_there = [](const auto& lanes) { return lanes[0] == kCount && lanes[1] == kCount; };
    EXPECT_TRUE(job.run([&] { return std::ranges::all_of(std::as_const(received), all_there); }));
    EXPECT_EQ(mail[0]->unsent(1), 0u);
    EXPECT_TRUE(was_drained[0] && was_drained[1]);
    for (auto& one : mail) one.reset();
  }
}

}  // namespace
}  // namespace shoal::net

// Messages arrive whole and in the order in which they were sent, whatever their lengths and whatever the network does.
#include "shoal/table/mail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "shoal/net/inproc.h"

namespace shoal::table {
namespace {

Message message_of(std::uint64_t number, std::size_t rows, Kind kind) {
  Message message = Message::of_rows(kind, 5, rows, 8);
  message.header.sequence = number;
  std::ranges::fill(message.body, static_cast<std::byte>(number));
  return message;
}

// Goal: two members send each other 60 messages to servers and 60 to readers, from none to 40,000 rows long, so that some are short, some long
// and more than may be under way wait; each lane is received in order, with its bytes.
TEST(Mail, long_and_short_messages_keep_their_order) {
  constexpr std::uint64_t kCount = 60;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    net::InprocJob job(2, {.seed = seed});
    std::uint64_t received[2][2] = {};
    bool was_drained[2] = {};
    std::unique_ptr<Mail> mail[2];
    std::vector<std::size_t> rows(kCount);
    for (std::size_t& count : rows) count = std::vector<std::size_t>{0, 1, 64, 65, 1000, 40000}[random() % 6];
    for (net::Rank rank = 0; rank < 2; ++rank) {
      const auto deliver = [&, rank](net::Rank from, const Message& message) {
        EXPECT_EQ(from, 1 - rank);
        std::uint64_t& next = received[rank][message.header.kind > kLastToServer];
        EXPECT_EQ(message.header.sequence, next);
        EXPECT_EQ(message.header.count, rows[next]);
        EXPECT_TRUE(std::ranges::all_of(message.body, [&](std::byte byte) { return byte == static_cast<std::byte>(next); }));
        ++next;
      };
      const auto drained = [&, rank](net::Rank to) {
        EXPECT_EQ(mail[rank]->unsent(to), 0u);
        was_drained[rank] = true;
      };
      mail[rank] = std::make_unique<Mail>(job.member(rank), std::uint16_t{5}, deliver, drained);
    }
    for (net::Rank rank = 0; rank < 2; ++rank) {
      for (std::uint64_t number = 0; number < kCount; ++number) {
        for (const Kind kind : {Kind::update, Kind::rows}) {
          std::vector<Message> one;
          one.push_back(message_of(number, rows[number], kind));
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
}  // namespace shoal::table

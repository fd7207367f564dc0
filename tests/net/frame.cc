// The wire's formats: what is encoded comes back, and no bytes whatever are read past their end or believed too large.
#include "shoal/net/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "shoal/net/handshake.h"

namespace shoal::net::wire {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Frame, a_header_comes_back) {
  Header header;
  header.kind = Kind::data;
  header.cls = Class::background;
  header.eager = true;
  header.follows = true;
  header.dry = true;
  header.length = 12345;
  header.tag = {0x0123456789abcdef, 77};
  header.offset = 1ull << 40;
  header.consumed = 3ull << 40;
  const auto back = decode(encode(header), Channel::bulk);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cls, header.cls);
  EXPECT_EQ(back->eager, header.eager);
  EXPECT_EQ(back->follows, header.follows);
  EXPECT_EQ(back->dry, header.dry);
  EXPECT_EQ(back->length, header.length);
  EXPECT_EQ(back->tag, header.tag);
  EXPECT_EQ(back->offset, header.offset);
  EXPECT_EQ(back->consumed, header.consumed);
}

TEST(Frame, only_bulk_data_is_packed_and_into_fewer_bytes) {
  Header header{.length = 1000, .packed = 999, .tag = {1, 2}};
  ASSERT_TRUE(decode(encode(header), Channel::bulk));
  EXPECT_EQ(decode(encode(header), Channel::bulk)->packed, 999U);
  EXPECT_FALSE(decode(encode(header), Channel::memory));
  header.packed = 1000;
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
  header = {.cls = Class::urgent, .length = 1000, .packed = 999, .tag = {1, 2}};
  EXPECT_FALSE(decode(encode(header), Channel::control));
}

TEST(Frame, what_was_given_and_comes_back) {
  Header header{.lent = true, .given = true, .length = 100, .tag = {1, 2}};
  ASSERT_TRUE(decode(encode(header), Channel::memory));
  EXPECT_TRUE(decode(encode(header), Channel::memory)->given);
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
  header.lent = false;
  EXPECT_FALSE(decode(encode(header), Channel::memory));  // only what is lent
  header = {.kind = Kind::returned, .length = 32, .tag = {}};
  EXPECT_TRUE(decode(encode(header), Channel::memory));
  EXPECT_FALSE(decode(encode(header), Channel::control));
  EXPECT_FALSE(decode(encode(header), Channel::bulk));

  const std::vector<Returned> returned = {{7, 1}, {1ull << 40, 3}};
  const std::string text = encode(returned);
  const auto back = decode_returned(bytes_of(text));
  ASSERT_TRUE(back && back->size() == 2);
  EXPECT_EQ((*back)[1].first, returned[1].first);
  EXPECT_EQ((*back)[1].count, returned[1].count);
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_EQ(decode_returned(bytes_of(text).first(size)).has_value(), size % 16 == 0);
  EXPECT_FALSE(decode_returned(bytes_of(std::string((kReturnedPerFrame + 1) * 16, 'x'))));
}

TEST(Frame, each_channel_refuses_what_is_not_its_own) {
  Header header;
  header.length = 100;
  EXPECT_TRUE(decode(encode(header), Channel::bulk));
  EXPECT_FALSE(decode(encode(header), Channel::control));  // bulk data on the control connection
  header.cls = Class::urgent;
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
  EXPECT_TRUE(decode(encode(header), Channel::control));
  EXPECT_TRUE(decode(encode(header), Channel::memory));
  header.length = kUrgentLimit + 1;
  EXPECT_FALSE(decode(encode(header), Channel::control));
  EXPECT_FALSE(decode(encode(header), Channel::memory));
  header.cls = Class::bulk;
  EXPECT_TRUE(decode(encode(header), Channel::memory));
  header.length = kMaxFrame + 1;
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
  EXPECT_FALSE(decode(encode(header), Channel::memory));
  header.length = 0;
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
  for (const Kind kind : {Kind::heartbeat, Kind::goodbye, Kind::failure, Kind::mailbox, Kind::segment}) {
    header.kind = kind;
    EXPECT_TRUE(decode(encode(header), Channel::control));
    EXPECT_FALSE(decode(encode(header), Channel::bulk));
    EXPECT_FALSE(decode(encode(header), Channel::memory));  // who is alive, and how memory is shared
  }
}

TEST(Frame, a_sender_tells_that_it_has_nothing_on_the_way_of_its_data) {
  Header header{.kind = Kind::dry, .tag = {1, 2}, .offset = 3};
  EXPECT_TRUE(decode(encode(header), Channel::bulk));
  EXPECT_TRUE(decode(encode(header), Channel::memory));
  EXPECT_FALSE(decode(encode(header), Channel::control));
  header.length = 1;
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
  header = {.kind = Kind::request, .dry = true, .tag = {1, 2}};  // only data ends a stream's bytes
  EXPECT_FALSE(decode(encode(header), Channel::bulk));
}

// Whatever a header says is either refused or within the bounds that its reader allocates for.
TEST(Frame, random_headers_are_refused_or_bounded) {
  std::mt19937_64 random(20261121);
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    HeaderBytes bytes;
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (i % 2) {  // near misses: plausible kinds, classes and lengths
      const std::uint32_t length = random() % (2 * kMaxFrame);
      std::memcpy(bytes.data(), &length, 4);
      bytes[4] = static_cast<std::byte>(random() % 14);
      bytes[5] = static_cast<std::byte>(random() % 4);
      std::memset(bytes.data() + 6, static_cast<int>(random() % 2), 1);
      std::memset(bytes.data() + 7, 0, 1);
      std::memset(bytes.data() + 12, 0, 4);
    }
    for (const Channel channel : {Channel::control, Channel::bulk, Channel::memory}) {
      const auto header = decode(bytes, channel);
      if (!header) continue;
      ++accepted;
      EXPECT_LE(header->length, channel == Channel::control ? kUrgentLimit : kMaxFrame);
      EXPECT_EQ(encode(*header), bytes);
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Frame, credit_comes_back_and_its_prefixes_do_not) {
  Credit credit{99, {{{5, 1}, 10, 20}, {{6, 2}, 0, 1ull << 50}}};
  const std::string text = encode(credit);
  const auto back = decode_credit(bytes_of(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->consumed, 99u);
  ASSERT_EQ(back->grants.size(), 2u);
  EXPECT_EQ(back->grants[1].tag, (Tag{6, 2}));
  EXPECT_EQ(back->grants[1].limit, 1ull << 50);
  int whole = 0;
  for (std::size_t size = 0; size < text.size(); ++size) whole += decode_credit(bytes_of(text).first(size)).has_value();
  EXPECT_EQ(whole, 2);  // with no grant and with one
}

TEST(Frame, a_limit_below_its_base_is_refused) {
  EXPECT_FALSE(decode_credit(bytes_of(encode(Credit{0, {{{1, 0}, 10, 9}}}))));
}

TEST(Frame, words_are_bounded) {
  const std::string words(5000, 'w');
  EXPECT_EQ(decode_heartbeat(bytes_of(encode(Heartbeat{1, 2, 3, words})))->activity.size(), kMaxActivity);
  EXPECT_EQ(decode_notice(bytes_of(encode(Notice{1, Code::io, words})))->reason.size(), kMaxReason);
  const std::string longer = encode(Notice{1, Code::io, std::string(kMaxReason, 'w')}) + "x";
  EXPECT_FALSE(decode_notice(bytes_of(longer)));
  EXPECT_FALSE(decode_heartbeat(bytes_of("short")));
}

TEST(HandshakeFrame, a_hello_is_bound_to_key_and_purpose) {
  Hello hello;
  hello.purpose = {Role::bulk, 1, 1, 3, 2, hash_of_job("job")};
  hello.nonce.fill(7);
  const Key key = derive_key("secret");
  auto bytes = encode_hello(key, hello);
  const auto back = decode_hello(key, bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->purpose.from, 3u);
  EXPECT_EQ(back->purpose.job, hello.purpose.job);
  EXPECT_FALSE(decode_hello(derive_key("other"), bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {  // any changed byte is refused
    bytes[i] ^= std::byte{1};
    EXPECT_FALSE(decode_hello(key, bytes)) << i;
    bytes[i] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace shoal::net::wire

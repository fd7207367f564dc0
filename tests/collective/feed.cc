// Pieces of bytes from several members that have them alike to those who come: each gives its share, and all of it arrives in order. On the scripted network.
#include "shoal/collective/feed.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>

#include "shoal/net/call.h"
#include "shoal/net/inproc.h"
#include "tests/net/members.h"

namespace shoal::collective {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFeed = 7;

std::string piece_of(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::string piece(size, '\0');
  for (char& c : piece) c = static_cast<char>(draw());
  return piece;
}

void give(Feed& feed, const std::string& piece, bool by_first = false) {
  const auto bytes = std::as_bytes(std::span(piece));
  const std::size_t cut = piece.size() / 3;  // somewhere
  feed.give({bytes.first(cut), {}, bytes.subspan(cut)}, 10s, by_first);
}

std::string next(Follower& follower) {
  const Bytes piece = follower.next();
  return {reinterpret_cast<const char*>(piece.data()), piece.size()};
}

// The first `givers` members feed the others.
struct Fed {
  Fed(net::Rank givers, net::Rank others, std::uint64_t seed = 1, std::size_t eager = 1024)
      : job(givers + others, {.seed = seed, .on_peer_lost = net::OnPeerLost::shrink, .eager = eager}) {
    std::vector<net::Rank> to;
    for (net::Rank r = givers; r < givers + others; ++r) to.push_back(r);
    for (net::Rank r = 0; r < givers; ++r) feeds.emplace_back(job.member(r), to, kFeed, Feed::Share{r, givers});
    for (const net::Rank r : to) followers.emplace_back(job.member(r), kFeed);
  }
  void give(const std::string& piece) {
    for (Feed& feed : feeds) shoal::collective::give(feed, piece);
  }
  net::InprocJob job;
  std::deque<Feed> feeds;
  std::deque<Follower> followers;
};

std::optional<Code> why_not(Follower& follower) {
  try {
    follower.next();
    return {};
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(Feed, every_piece_arrives_whole_and_in_order) {
  const std::size_t sizes[] = {300'001, 5, 1, 0, 70'000, 3};
  for (net::Rank givers = 1; givers <= 4; ++givers) {
    for (net::Rank others = 1; others <= 2; ++others) {
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(testing::Message() << givers << " givers, " << others << " others, seed " << seed);
        Fed fed(givers, others, seed);
        for (std::size_t n = 0; n < std::size(sizes); ++n) {
          if (n > 0) fed.give(piece_of(sizes[n - 1], n - 1));  // one ahead of who follows
          if (n + 1 == std::size(sizes)) fed.give(piece_of(sizes[n], n));
          if (n == 0) continue;
          for (Follower& follower : fed.followers) EXPECT_EQ(next(follower), piece_of(sizes[n - 1], n - 1));
        }
        for (Follower& follower : fed.followers) EXPECT_EQ(next(follower), piece_of(sizes[5], 5));
      }
    }
  }
}

TEST(Feed, no_link_of_a_giver_carries_more_than_its_share) {
  Fed fed(3, 1);
  fed.give(piece_of(900'000, 1));
  fed.followers[0].next();
  for (net::Rank giver = 0; giver < 3; ++giver) EXPECT_NEAR(static_cast<double>(fed.job.bytes_sent(giver, 3)), 300'000, 100);
}

TEST(Feed, is_behind_until_the_state_has_left_and_then_with_two_pieces_as_the_first_giver_sees_it) {
  Fed fed(2, 1);
  const auto behind = [&] { return std::pair(fed.feeds[0].is_behind(), fed.feeds[1].is_behind()); };
  fed.give(piece_of(100'000, 1));
  EXPECT_EQ(behind(), std::pair(true, false));
  fed.followers[0].next();
  fed.job.run();
  EXPECT_EQ(behind(), std::pair(false, false));
  fed.give(piece_of(100'000, 2));
  EXPECT_EQ(behind(), std::pair(false, false));
  fed.give(piece_of(100'000, 3));
  EXPECT_EQ(behind(), std::pair(true, false));
  fed.followers[0].next();
  fed.job.run();
  EXPECT_EQ(behind(), std::pair(false, false));
}

TEST(Feed, what_differs_between_members_is_not_put_together) {
  for (const std::string& other : {piece_of(1000, 2), piece_of(999, 1)}) {
    Fed fed(3, 1);
    give(fed.feeds[0], piece_of(1000, 1));
    give(fed.feeds[1], other);
    give(fed.feeds[2], piece_of(1000, 1));
    EXPECT_EQ(why_not(fed.followers[0]), Code::mismatch);
  }
}

TEST(Feed, what_is_the_first_givers_comes_whole_between_the_others_pieces) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fed fed(3, 2, seed);
    for (std::uint64_t n = 0; n < 2; ++n) {
      fed.give(piece_of(50'000, n));
      for (Feed& feed : fed.feeds) give(feed, &feed == &fed.feeds[0] ? piece_of(777, n) : "", true);
    }
    for (std::uint64_t n = 0; n < 2; ++n) {
      for (Follower& follower : fed.followers) {
        EXPECT_EQ(next(follower), piece_of(50'000, n));
        EXPECT_EQ(next(follower), piece_of(777, n));
      }
    }
  }
}

// Also where it has given up because they did not give the same.
TEST(Feed, who_gives_does_not_wait_for_one_that_has_given_up) {
  for (const bool differ : {false, true}) {
    Fed fed(2, 1);
    give(fed.feeds[0], piece_of(100'000, 1));
    give(fed.feeds[1], piece_of(100'000, differ ? 2 : 1));
    EXPECT_EQ(why_not(fed.followers[0]), differ ? std::optional(Code::mismatch) : std::nullopt);
    fed.followers[0].give_up();
    for (std::uint64_t n = 0; n < 10; ++n) fed.give(piece_of(100'000, n));
    EXPECT_TRUE(fed.job.run([&] { return fed.feeds[0].has_left() && fed.feeds[1].has_left(); }));
  }
}

TEST(Feed, a_lost_giver_ends_it) {
  Fed fed(3, 2);
  fed.give(piece_of(300'000, 1));
  fed.job.at(50us, [&] { fed.job.kill(1); });
  for (Follower& follower : fed.followers) {
    std::optional<Code> why = why_not(follower);
    if (!why) why = why_not(follower);  // it was all there before
    EXPECT_EQ(why, Code::peer_lost);
  }
}

// It has left, and its bytes still do: nobody is to wait for room that it does not make.
TEST(Feed, who_gives_does_not_wait_for_one_that_has_ended_because_another_was_lost) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Fed fed(3, 2, seed);
    fed.give(piece_of(300'000, 1));
    fed.job.at(std::chrono::microseconds(10 * seed), [&] { fed.job.kill(1); });
    for (Follower& follower : fed.followers) {
      for (std::optional<Code> why; !why;) why = why_not(follower);
    }
    fed.followers.clear();
    for (std::uint64_t n = 0; n < 10; ++n) {
      give(fed.feeds[0], piece_of(100'000, n));
      give(fed.feeds[2], piece_of(100'000, n));
    }
    EXPECT_TRUE(fed.job.run([&] { return fed.feeds[0].has_left() && fed.feeds[2].has_left(); })) << seed;
  }
}

// Over sockets and memory, with threads: more pieces than fit, from members that do not wait for who follows.
TEST(Feed, a_hundred_pieces_over_memory) {
  net::Board board;
  constexpr net::Rank kGivers = 3;
  constexpr int kPieces = 100;
  net::each(kGivers + 1, [&](net::Rank rank) {
    const auto job = net::join_tcp(net::place_of(rank, kGivers + 1), board, "feed/", "secret", net::quick());
    if (rank == kGivers) {
      Follower follower(job->transport(), kFeed);
      for (int n = 0; n < kPieces; ++n) EXPECT_TRUE(next(follower) == piece_of(n == 0 ? 1'000'000 : 500'000, n)) << n;
    } else {
      Feed feed(job->transport(), {kGivers}, kFeed, {rank, kGivers});
      for (int n = 0; n < kPieces; ++n) give(feed, piece_of(n == 0 ? 1'000'000 : 500'000, n));
      EXPECT_TRUE(net::wait_for(job->transport(), [&] { return feed.has_left(); }, 20s));
    }
  });
}

}  // namespace
}  // namespace shoal::collective

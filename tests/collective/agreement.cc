// The agreement alone, with every message in every member's own time: members hear votes one at a time, in any order between senders, die between any
// two of their messages, and hold or give up operations meanwhile. No two of those that live ever treat an operation differently.
#include "shoal/collective/agreement.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "tests/from_environment.h"

namespace shoal::collective {
namespace {

using Fate = Agreement::Fate;

// Members that hold what they began in one epoch when all of it began it, and commit it when all of it hold it: what survivors.cc does on the network.
class World {
 public:
  World(std::uint32_t size, std::uint64_t seed) : draw_(seed) {
    for (std::uint32_t i = 0; i < size; ++i) members_.push_back({Agreement(size, i), std::vector<std::deque<Message>>(size), true, false, 0, {}, {}});
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) act(static_cast<std::uint32_t>(draw_() % members_.size()), draw_() % 40);
    quiet_ = true;
    // Everything is delivered, every death is known, and everybody goes on to the last operation.
    for (int round = 0; round < 20000; ++round) act(static_cast<std::uint32_t>(draw_() % members_.size()), 2 + draw_() % 3);
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].lives) continue;
      ASSERT_FALSE(members_[i].agreement.deciding()) << "member " << i << " decides for ever";
      ASSERT_GE(members_[i].done, kEnough) << "member " << i << " stands still";
    }
  }
  int deaths() const { return deaths_; }
  int given_up() const { return given_up_; }

 private:
  static constexpr std::uint64_t kEnough = 12;
  struct Message {
    enum { begun, held, vote, death } kind;
    std::uint64_t epoch = 0, operation = 0;
    Vote voted;
  };
  struct Member {
    Agreement agreement;
    std::vector<std::deque<Message>> inbox;  // by sender; its end comes last
    bool lives, begun;
    std::uint64_t done;
    std::map<std::uint32_t, Message> latest_begun, latest_held;
  };

  void act(std::uint32_t i, std::uint64_t what) {
    Member& member = members_[i];
    if (!member.lives) return;
    if (what == 0 && !quiet_ && deaths_ + 1 < static_cast<int>(members_.size()) && draw_() % 4 == 0) return die(i);
    if (what == 1 && !quiet_ && draw_() % 6 == 0 && member.begun) {
      member.agreement.give_up(member.done);
      return decide(i);
    }
    if (what % 3 == 0) return hear(i, static_cast<std::uint32_t>(draw_() % members_.size()));
    if (!member.begun && !member.agreement.deciding() && member.agreement.held() <= member.done) begin(i);
    if (!member.begun && member.agreement.held() > member.done) end(i, Fate::given_up, 0);  // the others gave it up before
    go_on(i);
  }

  void tell(std::uint32_t from, Message message) {
    for (std::uint32_t to = 0; to < members_.size(); ++to) {
      if (to != from) members_[to].inbox[from].push_back(message);
    }
  }
  void die(std::uint32_t i) {
    members_[i].lives = false;
    ++deaths_;
    // What it last said may be on its way to some only.
    for (std::uint32_t to = 0; to < members_.size(); ++to) {
      auto& inbox = members_[to].inbox[i];
      for (std::uint64_t lost = draw_() % 3; lost > 0 && !inbox.empty(); --lost) inbox.pop_back();
      if (to != i) inbox.push_back({Message::death, 0, 0, {}});
    }
  }
  void begin(std::uint32_t i) {
    members_[i].begun = true;
    tell(i, {Message::begun, members_[i].agreement.concluded().epoch(), members_[i].done, {}});
  }
  void decide(std::uint32_t i) {
    if (members_[i].agreement.held() <= members_[i].done) members_[i].begun = false;  // who holds it waits for its fate
    tell(i, {Message::vote, 0, 0, members_[i].agreement.next_vote()});
    conclude(i);
  }
  void conclude(std::uint32_t i) {
    Member& member = members_[i];
    const std::uint64_t held = member.agreement.held();
    if (!member.agreement.conclude()) return;
    const Fate fate = member.agreement.fate(member.done);
    if (fate == Fate::again) member.begun = false;
    if (fate == Fate::given_up && member.agreement.held() > member.done) end(i, fate, 0);
    if (fate == Fate::committed && held > member.done) end(i, fate, epoch_held_[{i, member.done}]);
  }
  bool all_said(std::uint32_t i, const std::map<std::uint32_t, Message>& said) {
    const Member& member = members_[i];
    for (std::uint32_t other = 0; other < members_.size(); ++other) {
      if (other == i || member.agreement.concluded().lost[other]) continue;
      const auto found = said.find(other);
      if (found == said.end() || found->second.epoch != member.agreement.concluded().epoch() || found->second.operation != member.done) return false;
    }
    return true;
  }
  void go_on(std::uint32_t i) {
    Member& member = members_[i];
    if (member.agreement.deciding()) return;
    if (member.begun && member.agreement.held() == member.done && all_said(i, member.latest_begun)) {
      member.agreement.hold(member.done);
      epoch_held_[{i, member.done}] = member.agreement.concluded().epoch();
      tell(i, {Message::held, member.agreement.concluded().epoch(), member.done, {}});
    }
    if (member.agreement.held() > member.done && member.begun && all_said(i, member.latest_held)) end(i, Fate::committed, epoch_held_[{i, member.done}]);
  }
  void hear(std::uint32_t i, std::uint32_t from) {
    Member& member = members_[i];
    if (member.inbox[from].empty()) return;
    const Message message = member.inbox[from].front();
    member.inbox[from].pop_front();
    switch (message.kind) {
      case Message::begun: member.latest_begun[from] = message; break;
      case Message::held: member.latest_held[from] = message; break;
      case Message::vote:
        if (member.agreement.heard(from, message.voted)) return decide(i);
        return conclude(i);
      case Message::death:
        if (member.agreement.lose(from)) return decide(i);
        return conclude(i);
    }
    go_on(i);
  }
  // What a caller hears must be what every other caller that lives in the end hears. Members that died may have heard otherwise only if nobody else did.
  void end(std::uint32_t i, Fate fate, std::uint64_t epoch) {
    Member& member = members_[i];
    given_up_ += fate == Fate::given_up;
    const auto [known, first] = outcome_.try_emplace(member.done, std::pair(fate, epoch), i);
    if (!first && members_[known->second.second].lives) {
      EXPECT_EQ(known->second.first.first, fate) << "operation " << member.done << ", members " << known->second.second << " and " << i;
      EXPECT_EQ(known->second.first.second, epoch) << "operation " << member.done << " by other contributors";
    } else {
      known->second = {std::pair(fate, epoch), i};
    }
    ++member.done;
    member.begun = false;
  }

  std::mt19937_64 draw_;
  std::vector<Member> members_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> epoch_held_;
  std::map<std::uint64_t, std::pair<std::pair<Fate, std::uint64_t>, std::uint32_t>> outcome_;
  bool quiet_ = false;
  int deaths_ = 0, given_up_ = 0;
};

TEST(Agreement, is_one_in_every_order_of_messages_and_deaths) {
  int deaths = 0, given_up = 0;
  for (const std::uint64_t seed : seeds(400)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(static_cast<std::uint32_t>(2 + seed % 5), seed);
    world.run(1500);
    if (testing::Test::HasFailure()) return;
    deaths += world.deaths();
    given_up += world.given_up();
  }
  EXPECT_GT(deaths, 0);
  EXPECT_GT(given_up, 0);
}

TEST(Agreement, votes_as_bytes_are_themselves_again) {
  for (const std::uint32_t size : {1u, 7u, 8u, 9u, 200u}) {
    Vote vote{{std::vector<bool>(size), 3}, 17, 0b101, 16};
    for (std::uint32_t i = 0; i < size; i += 3) vote.view.lost[i] = true;
    std::vector<std::byte> bytes(vote_bytes(size));
    encode(vote, bytes);
    const auto again = decode_vote(bytes, size);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->view, vote.view);
    EXPECT_EQ(again->held, vote.held);
    EXPECT_EQ(again->given_up, vote.given_up);
    EXPECT_EQ(again->gives_up, vote.gives_up);
  }
}

TEST(Agreement, bytes_that_are_no_vote_are_refused) {
  std::vector<std::byte> bytes(vote_bytes(9));
  EXPECT_TRUE(decode_vote(bytes, 9));
  EXPECT_FALSE(decode_vote(std::span(bytes).first(bytes.size() - 1), 9)) << "cut short";
  EXPECT_FALSE(decode_vote(bytes, 17)) << "of another group";
  bytes.back() = std::byte{0x80};
  EXPECT_FALSE(decode_vote(bytes, 9)) << "a member that does not exist is lost";
  bytes.back() = std::byte{0};
  bytes[5] = std::byte{1};
  EXPECT_FALSE(decode_vote(bytes, 9)) << "more rounds than are counted";
}

}  // namespace
}  // namespace shoal::collective

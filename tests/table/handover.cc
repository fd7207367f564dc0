// A shard that is handed over while all write to it (handover.h): what the receiver has made of it is what the giver has, whatever the pace of each link.
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "shoal/table/shard.h"
#include "tests/from_environment.h"

namespace shoal::table {
namespace {

constexpr net::Rank kWriters = 3, kGiver = 0, kReceiver = 1;
constexpr std::uint64_t kHandover = 7;
constexpr Key kRows = 5;
constexpr Clock kTicks = 12;

// Two servers of one shard and their three workers. Messages are in order on each lane of each link, and the links take turns as drawn.
class Handover {
 public:
  explicit Handover(std::uint64_t seed, Consistency consistency) : draw_(seed), spec_{.name = "t", .type = DType::i64, .width = 1, .consistency = consistency} {
    for (const net::Rank rank : {kGiver, kReceiver}) servers_[rank] = make_shard(spec_, workers_, kWriters, true, around(rank));
    for (net::Rank member = 0; member < kWriters; ++member) say(member, kGiver, Message::of_kind(Kind::open, id_of(spec_)));
    run_all();
    servers_[kGiver]->give(kReceiver, kHandover, std::vector<bool>(kWriters));
    servers_[kReceiver]->expect(kGiver, kHandover);
  }

  // Each worker writes a clock or marks its stream, or a link delivers, until nothing is left to do.
  void run() {
    for (bool some = true; some;) {
      std::vector<std::function<void()>> next;
      for (net::Rank member = 0; member < kWriters; ++member) {
        if (clock_[member] < kTicks && clock_[member] == std::ranges::min(clock_)) next.push_back([this, member] { tick(member); });
        if (!marked_[member]) next.push_back([this, member] { mark(member); });
      }
      for (auto& [link, messages] : links_) {
        if (!messages.empty()) next.push_back([this, &link = link] { deliver(link); });
      }
      if ((some = !next.empty())) next[draw_() % next.size()]();
    }
  }

  std::vector<std::int64_t> rows(net::Rank server) {
    rows_.clear();
    Message request = Message::of_rows(Kind::fetch, id_of(spec_), kRows, 0);
    for (Key key = 0; key < kRows; ++key) request.key_places()[key] = key;
    servers_[server]->take(kReceiver, request);
    return rows_;
  }
  bool is_whole() const { return servers_.at(kReceiver)->is_whole(); }
  std::vector<std::int64_t> added() const { return std::vector<std::int64_t>(kRows, kTicks * (1 + 10 + 100)); }

 private:
  struct Link {
    net::Rank from, to;
    bool background;
    auto operator<=>(const Link&) const = default;
  };

  Surroundings around(net::Rank rank) {
    const auto send = [this, rank](net::Rank to, std::vector<Message> messages) {
      for (Message& message : messages) {
        if (message.header.kind == Kind::fetched) {
          const auto values = message.values<std::int64_t>();
          rows_.assign(values.begin(), values.end());
        } else if (message.header.kind == Kind::more || is_given(message.header.kind)) {
          say(rank, to, std::move(message));
        }
      }
    };
    return {send, [](net::Rank) { return true; }, {}, [] { return Instant{}; }};
  }

  void say(net::Rank from, net::Rank to, Message message) {
    const bool background = is_given(message.header.kind);
    links_[{from, to, background}].push_back(std::move(message));
  }
  void write(net::Rank member, const Message& message) {
    say(member, kGiver, message);
    if (marked_[member]) say(member, kReceiver, message);
  }
  void tick(net::Rank member) {
    Message update = Message::of_rows(Kind::update, id_of(spec_), kRows, sizeof(std::int64_t));
    for (Key key = 0; key < kRows; ++key) {
      update.key_places()[key] = key;
      update.value_places<std::int64_t>()[key] = member == 0 ? 1 : member == 1 ? 10 : 100;
    }
    update.header.ends = Ends::clock;
    update.header.worker = member;
    update.header.clock = clock_[member]++;
    update.header.sequence = static_cast<std::uint64_t>(clock_[member]);
    write(member, update);
  }
  void mark(net::Rank member) {
    for (const net::Rank server : {kGiver, kReceiver}) say(member, server, Message::of_kind(Kind::follow, id_of(spec_), kHandover));
    marked_[member] = true;
  }
  void deliver(const Link& link) {
    Message message = std::move(links_[link].front());
    links_[link].pop_front();
    servers_[link.to]->take(link.from, std::move(message));
  }
  void run_all() {
    for (auto& [link, messages] : links_) {
      while (!messages.empty()) deliver(link);
    }
  }

  std::mt19937_64 draw_;
  const Spec spec_;
  const Workers workers_{{0, 1, 2}, 1};
  std::map<net::Rank, std::unique_ptr<Server>> servers_;
  std::map<Link, std::deque<Message>> links_;
  std::vector<Clock> clock_ = std::vector<Clock>(kWriters);
  std::vector<bool> marked_ = std::vector<bool>(kWriters);
  std::vector<std::int64_t> rows_;
};

TEST(Handover, counts_each_message_once_whatever_the_pace_of_each_link) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{2}), Consistency(Essp{2}), Consistency(Cap{1}), Consistency(Async{})}) {
    for (const std::uint64_t seed : seeds(200)) {
      SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
      Handover handover(seed, consistency);
      handover.run();
      ASSERT_TRUE(handover.is_whole());
      EXPECT_EQ(handover.rows(kGiver), handover.added());
      EXPECT_EQ(handover.rows(kReceiver), handover.added());
    }
  }
}

}  // namespace
}  // namespace shoal::table

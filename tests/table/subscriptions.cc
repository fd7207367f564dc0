// Rows that a reader unsubscribes and asks for again while they are pushed, whole or in part, with every order of what is under way: no copy is ever taken
// for newer than it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "shoal/table/copies.h"
#include "shoal/table/shard.h"
#include "tests/from_environment.h"

namespace shoal::table {
namespace {

constexpr net::Rank kReader = 0, kWriter = 1;
constexpr Key kFewRows = 3;
constexpr std::size_t kFewColumns = 6;
constexpr int kSteps = 400;

// A server's shard, one member that writes and one that reads, whose messages take their time, each link in order.
class Subscriptions {
 public:
  explicit Subscriptions(std::uint64_t seed, const Consistency& consistency)
      : draw_(seed), spec_{.name = "t", .type = DType::i64, .width = kFewColumns, .consistency = consistency}, placement_({0}, 1), copies_(kFewColumns, placement_, 1, 1 << 20) {
    const auto send = [this](net::Rank to, std::vector<Message> messages) {
      if (to == kReader) std::ranges::move(messages, std::back_inserter(to_reader_));
    };
    server_ = make_shard(spec_, Workers({kReader, kWriter}, 1), 2, false, {send, [](net::Rank) { return true; }, {}, [] { return Instant{}; }});
    for (const net::Rank member : {kReader, kWriter}) server_->take(member, Message::of_kind(table::Kind::open, id_of(spec_)));
  }
  void run() {
    for (int step = 0; step < kSteps; ++step) {
      switch (draw_() % 8) {
        case 0: if (clock_[kWriter] <= clock_[kReader] + 1) tick(kWriter, draw_() % kFewRows); break;
        case 1: if (clock_[kReader] <= clock_[kWriter] + 1) tick(kReader, kFewRows); break;
        case 2: ask(draw_() % kFewRows); break;
        case 3: intend(draw_() % kFewRows); break;
        case 4: case 5: hear(); break;
        default: serve(draw_() % 2 == 0 ? kReader : kWriter); break;
      }
      expect_ages();
    }
  }
  int unsubscribed() const { return unsubscribed_; }
  int in_part() const { return in_part_; }  // messages with rows of which some columns came

 private:
  // A clock with an increment to a column of that row, or with none.
  void tick(net::Rank member, Key key) {
    const Clock clock = clock_[member]++;
    if (member == kReader) drop();
    Message update = Message::of_rows(table::Kind::update, id_of(spec_), key < kFewRows ? 1 : 0, kFewColumns * sizeof(std::int64_t));
    if (key < kFewRows) {
      update.key_places()[0] = key;
      std::fill_n(update.value_places<std::int64_t>(), kFewColumns, 0);
      update.value_places<std::int64_t>()[draw_() % kFewColumns] = 1;
      added_[key].push_back(clock);
    }
    update.header.ends = Ends::clock;
    update.header.worker = member;
    update.header.clock = clock;
    update.header.sequence = static_cast<std::uint64_t>(clock) + 1;
    to_server_[member].push_back(std::move(update));
  }
  Message about(table::Kind kind, Key key) const {
    Message message = Message::of_rows(kind, id_of(spec_), 1, 0);
    message.key_places()[0] = key;
    return message;
  }
  void drop() {
    for (const Key key : copies_.drop(clock_[kReader], kNever)) {
      to_server_[kReader].push_back(about(table::Kind::unsubscribe, key));
      to_server_[kReader].back().header.sequence = copies_.unsubscribes(0);
      ++unsubscribed_;
    }
  }
  void ask(Key key) {
    for (const Key missing : copies_.ask(0, std::span(&key, 1), 0, clock_[kReader])) {
      to_server_[kReader].push_back(about(table::Kind::request, missing));
      to_server_[kReader].back().header.sequence = copies_.unsubscribed(0);
    }
  }
  void intend(Key key) { copies_.intend(std::span(&key, 1), clock_[kReader]); }
  void serve(net::Rank member) {
    if (to_server_[member].empty()) return;
    Message message = std::move(to_server_[member].front());
    to_server_[member].pop_front();
    server_->take(member, std::move(message));
  }
  void hear() {
    if (to_reader_.empty()) return;
    const Message message = std::move(to_reader_.front());
    to_reader_.pop_front();
    if (message.header.kind == table::Kind::rows) copies_.take(0, message, true, Instant{});
    if (message.header.kind == table::Kind::changes) copies_.change(0, message, {}, Instant{});
    in_part_ += message.header.kind == table::Kind::changes;
    if (message.header.kind == table::Kind::clock) copies_.announce(0, message.header.clock, Instant{});
    drop();
  }
  void expect_ages() {
    for (Key key = 0; key < kFewRows; ++key) {
      const auto number = copies_.find(key, 0);
      if (!copies_.is_usable(number, 0)) continue;
      const auto within = std::ranges::count_if(added_[key], [&](Clock clock) { return clock < copies_.age(number); });
      const auto row = copies_.row(number);
      EXPECT_GE(std::accumulate(row.begin(), row.end(), std::int64_t{0}), within) << "row " << key << " is said to be of age " << copies_.age(number);
    }
  }

  std::mt19937_64 draw_;
  const Spec spec_;
  const Placement placement_;
  Copies<std::int64_t> copies_;
  std::deque<Message> to_reader_;
  std::map<net::Rank, std::deque<Message>> to_server_;
  std::unique_ptr<Server> server_;
  std::vector<Clock> clock_ = std::vector<Clock>(2);
  std::map<Key, std::vector<Clock>> added_;         // the clocks of its increments
  int unsubscribed_ = 0, in_part_ = 0;
};

TEST(Subscriptions, no_copy_is_taken_for_newer_than_it_is) {
  int unsubscribed = 0, in_part = 0, runs = 0;
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Essp{1}), Consistency(Cap{1})}) {
    for (const std::uint64_t seed : seeds(500)) {
      SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
      Subscriptions subscriptions(seed, consistency);
      subscriptions.run();
      unsubscribed += subscriptions.unsubscribed();
      in_part += subscriptions.in_part();
      ++runs;
    }
  }
  EXPECT_GT(unsubscribed, 3 * runs);
  EXPECT_GT(in_part, 10 * runs);
}

}  // namespace
}  // namespace shoal::table

// What workers say to servers has a bound in bytes until these have counted it in (invariant I9), also while a server's function runs; who waits for room
// waits for servers alone, and everything arrives.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"

namespace shoal::table {
namespace {

constexpr std::size_t kWidth = 64, kMost = 8192;  // bytes to one server by each of two members
constexpr std::size_t kClockBytes = sizeof(Header) + sizeof(Key) + kWidth * sizeof(std::int64_t);
const std::vector<std::int64_t> kOnes(kWidth, 1);

// Rank 0 serves, and rank 1 writes one row a clock.
struct Writer {
  Writer(const Consistency& consistency, std::size_t most, const net::ScriptedNetwork& network, const OnDisk& functions = {}) : job(2, network) {
    for (net::Rank rank = 0; rank < 2; ++rank) {
      tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.servers = {0}, .functions = functions, .most_under_way = 2 * most}));
      tables.back()->define<std::int64_t>("w", "slow", [](const Block<std::int64_t>& block) { return std::vector<std::int64_t>(block.keys.size(), 1); });
    }
    for (auto& of : tables) members.push_back(of->worker().open<std::int64_t>({.name = "w", .width = kWidth, .consistency = consistency}));
  }
  ~Writer() {
    members.clear();
    tables.clear();
  }
  Copy<std::int64_t>& copy() { return members[1].copy(); }
  void write() {
    copy().add(0, std::span(&key, 1), kOnes);
    copy().tick(0);
    most_seen = std::max(most_seen, copy().under_way(0));
    ++written;
  }
  std::int64_t sum() {
    for (auto& member : members) member.arrive();
    job.run();
    std::vector<std::int64_t> row(kWidth);
    members[0].read(std::span(&key, 1), row);
    return row.back();
  }

  const Key key = 7;
  net::InprocJob job;
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<std::int64_t>> members;
  std::size_t most_seen = 0;
  std::int64_t written = 0;
};

TEST(Pressure, who_writes_faster_than_the_link_bears_waits) {
  for (const Consistency& consistency : {Consistency(Async{}), Consistency(Ssp{1000}), Consistency(Essp{1000}), Consistency(Cap{1000})}) {
    SCOPED_TRACE(name(consistency));
    Writer writer(consistency, kMost, {.rate = 1e6});
    for (int clock = 0; clock < 200; ++clock) {
      writer.members[1].add(std::span(&writer.key, 1), kOnes);
      writer.members[1].tick();
      writer.most_seen = std::max(writer.most_seen, writer.copy().under_way(0));
    }
    EXPECT_LE(writer.most_seen, kMost);
    const Telemetry met = writer.members[1].telemetry();
    EXPECT_EQ(met.waits[static_cast<std::size_t>(Cause::gate)], 0u);
    const bool leaves_alone = leaves_at_once(consistency);  // one part at a time: what is added meanwhile is summed
    EXPECT_EQ(met.waits[static_cast<std::size_t>(Cause::back_pressure)] > 0, true) << leaves_alone;
    EXPECT_NE(met.line("w").find("for servers to catch up"), std::string::npos);
    EXPECT_EQ(writer.sum(), 200);
  }
}

// The same without a bound that is reached: all of it is under way.
TEST(Pressure, nobody_waits_below_the_bound) {
  Writer writer(Async{}, 1 << 30, {.rate = 1e6});
  for (int clock = 0; clock < 200; ++clock) writer.write();
  EXPECT_EQ(writer.most_seen, 200 * kClockBytes);
  EXPECT_TRUE(writer.copy().may_go_on(0));
  EXPECT_EQ(writer.sum(), 200);
  EXPECT_EQ(writer.copy().under_way(0), 0u);
}

// While a function runs by keys what comes for its rows waits at the server: no more than the bound and one clock.
TEST(Pressure, what_waits_for_a_function_has_the_same_bound) {
  std::vector<std::function<void()>> held;
  Writer* at = nullptr;
  const auto functions = [&](std::function<void()> function) {
    held.push_back(std::move(function));
    at->job.at(at->job.now() - Instant{} + std::chrono::milliseconds(100), [&] { held.front()(); });
  };
  Writer writer(Async{}, kMost, {}, functions);
  at = &writer;
  for (int i = 1; i < 1000; ++i) {
    writer.job.at(writer.job.now() - Instant{} + std::chrono::microseconds(100 * i), [&] {
      if (!held.empty() && writer.copy().may_go_on(0)) writer.write();
    });
  }
  EXPECT_EQ(writer.members[0].call("slow", std::span(&writer.key, 1), {}).values, std::vector<std::int64_t>{1});
  EXPECT_GT(writer.most_seen, kMost);
  EXPECT_LE(writer.most_seen, kMost + kClockBytes);
  EXPECT_EQ(writer.written, static_cast<std::int64_t>(writer.most_seen / kClockBytes));
  EXPECT_EQ(writer.sum(), writer.written);
}

}  // namespace
}  // namespace shoal::table

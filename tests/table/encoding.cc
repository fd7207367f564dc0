// Rows that travel in fewer bytes: what rounding does to one, that nothing of many increments is lost, that all members see the same where that is
// promised, and that bounds on clocks hold as ever.
#include "shoal/table/rounding.h"

#include <cmath>
#include <map>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "tests/from_environment.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

constexpr Encoding kBoth[] = {Encoding::bf16, Encoding::int8};

// Goal: a message comes back as its rows rounded, which are rounded to themselves, each value within half a step; magnitudes from none to the largest.
template <class T>
void expect_rounding() {
  std::mt19937_64 draw(1);
  for (const Encoding encoding : kBoth) {
    for (int magnitude = -40; magnitude <= 37; ++magnitude) {
      constexpr std::size_t kRows = 3, kWidth = 37;
      Message message = Message::of_rows(Kind::update, 1, kRows, kWidth * sizeof(T));
      std::vector<T> rounded;
      for (std::size_t row = 0; row < kRows; ++row) {
        message.key_places()[row] = 10 + row;
        std::vector<T> values(kWidth);
        for (T& value : values) value = static_cast<T>((static_cast<double>(draw() % 20001) / 10000 - 1) * std::pow(10.0, magnitude));
        if (row == 1) values.assign(kWidth, 0);
        std::ranges::copy(values, message.value_places<T>() + row * kWidth);
        const std::vector<T> exact = values;
        round<T>(encoding, values);
        for (std::size_t i = 0; i < kWidth; ++i) {
          EXPECT_LE(std::abs(static_cast<double>(values[i]) - static_cast<double>(exact[i])), 0.5000001 * step_at<T>(encoding, exact, i));
        }
        rounded.insert(rounded.end(), values.begin(), values.end());
        const std::vector<T> once = values;
        round<T>(encoding, values);
        EXPECT_EQ(values, once) << "what is rounded stays";
      }
      const Message wire = encoded<T>(encoding, message, kWidth);
      EXPECT_EQ(wire.header.length, kRows * (sizeof(Key) + encoded_bytes(encoding, kWidth, sizeof(T))));
      EXPECT_EQ(fault_of(wire, encoded_bytes(encoding, kWidth, sizeof(T))), "");
      const Message back = decoded<T>(encoding, wire, kWidth);
      EXPECT_TRUE(std::ranges::equal(back.keys(), message.keys()));
      EXPECT_TRUE(std::ranges::equal(back.values<T>(), rounded)) << name(encoding) << " at 1e" << magnitude;
    }
  }
}
TEST(Encoding, rounds_to_what_travels) {
  expect_rounding<float>();
  expect_rounding<double>();
}

TEST(Encoding, what_is_too_large_becomes_the_largest) {
  std::vector<float> row{std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()};
  round<float>(Encoding::bf16, row);
  EXPECT_TRUE(std::isfinite(row[0]) && row[1] == -row[0]) << row[0];
  for (const float largest : {3.38e38f, std::numeric_limits<float>::max()}) {  // 64 of whose steps are too large
    std::vector<float> exact{largest, -largest, largest / 2, 0}, rounded = exact;
    round<float>(Encoding::int8, rounded);
    std::vector<std::byte> wire(encoded_bytes(Encoding::int8, 4, sizeof(float)));
    std::vector<float> back(4);
    encode<float>(Encoding::int8, exact, wire.data());
    decode<float>(Encoding::int8, wire.data(), back);
    EXPECT_EQ(back, rounded);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_LE(std::abs(rounded[i] - exact[i]), step_at<float>(Encoding::int8, exact, i)) << i;
  }
}

// Goal: the server's sums are the exact ones but for half a step of what each worker sent last, after any number of increments far below a step
// of the row; and no reader is further than a step from them. Without what is left out being added these increments, unlike in size within a
// row, would be off by a part of each.
TEST(Encoding, nothing_of_many_increments_is_lost) {
  constexpr net::Rank kMembers = 3;
  constexpr std::size_t kWidth = 16;
  constexpr int kClocks = 400;
  const Key key = 5;
  for (const Encoding encoding : kBoth) {
    for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Essp{1}), Consistency(Async{})}) {
      SCOPED_TRACE(std::string(name(encoding)) + ", " + name(consistency));
      net::InprocJob job(kMembers);
      std::vector<std::unique_ptr<Tables>> tables;
      std::vector<Table<double>> workers;
      for (net::Rank rank = 0; rank < kMembers; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank)));
      for (auto& of : tables) workers.push_back(of->worker().open<double>({.name = "w", .width = kWidth, .consistency = consistency, .encoding = encoding}));
      std::vector<double> exact(kWidth), values(kWidth), server(kWidth), most_added(kWidth);
      for (int clock = 0; clock < kClocks; ++clock) {
        for (net::Rank rank = 0; rank < kMembers; ++rank) {
          std::vector<double> increment(kWidth);
          for (std::size_t i = 0; i < kWidth; ++i) {
            increment[i] = std::pow(2.0, -static_cast<double>(i)) * (1 + 0.1 * std::cos(clock + rank)) / 3;
            exact[i] += increment[i];
          }
          std::size_t at = 0;
          auto& copy = workers[rank].copy();
          ASSERT_TRUE(job.run([&] { return copy.ready(0, std::span(&key, 1), at) && copy.may_go_on(0); }));
          copy.read(0, std::span(&key, 1), values);
          copy.add(0, std::span(&key, 1), increment);
          copy.tick(0);
        }
      }
      for (auto& worker : workers) worker.arrive();
      job.run();
      workers[0].fetch(std::span(&key, 1), server);
      for (std::size_t i = 0; i < kWidth; ++i) {
        const std::vector<double> sent(kWidth, 0.5);     // more than any part
        EXPECT_LE(std::abs(server[i] - exact[i]), kMembers * step_at<double>(encoding, sent, i)) << "column " << i;
      }
      std::vector<std::vector<double>> seen;
      for (auto& worker : workers) {
        worker.read(std::span(&key, 1), values);
        seen.push_back(values);
        for (std::size_t i = 0; i < kWidth; ++i) EXPECT_LE(std::abs(values[i] - server[i]), 1.01 * step_at<double>(encoding, server, i));
        if (whole_clocks(consistency)) {
          EXPECT_EQ(seen[0], values);
        }
      }
      workers.clear();
      tables.clear();
    }
  }
}

ScriptedWorkers<float>::Options rounding(Encoding encoding, const Consistency& consistency, std::uint64_t seed) {
  ScriptedWorkers<float>::Options options;
  options.encoding = encoding;
  options.consistency = consistency;
  options.seed = seed;
  return options;
}

// Goal: with small whole numbers, which no rounding changes, reads are exact and as fresh as without, own increments at once.
TEST(Encoding, clocks_hold_as_ever) {
  for (const Encoding encoding : kBoth) {
    for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Ssp{2}), Consistency(Essp{2}), Consistency(Cap{1}), Consistency(Async{})}) {
      for (const std::uint64_t seed : seeds(20)) {
        SCOPED_TRACE(std::string(name(encoding)) + ", " + name(consistency) + ", seed " + std::to_string(seed));
        ScriptedWorkers<float>::Options options = rounding(encoding, consistency, seed);
        options.members = static_cast<net::Rank>(1 + seed % 3);
        options.uneven = seed % 2 == 0;
        options.ones = true;
        ScriptedWorkers<float> counts(options);
        counts.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const float> row) {
          for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
            const bool over = clock == kLastClock;
            const Clock surely = worker == reader || over ? clock : needed_age(consistency, clock);
            EXPECT_GE(row[worker], counts.added(worker, key, surely)) << "reader " << reader << " at clock " << clock << " of worker " << worker;
            EXPECT_LE(row[worker], counts.added(worker, key, whole_clocks(consistency) ? clock : counts.clock(worker) + 1));
          }
        });
      }
    }
  }
}

// Goal: under bsp what is read has the same bits on any network, and after a barrier on all members.
TEST(Encoding, bsp_has_the_same_bits_on_any_network_and_member) {
  for (const Encoding encoding : kBoth) {
    std::map<std::uint64_t, std::uint64_t> digests;
    for (const std::uint64_t seed : seeds(20)) {
      ScriptedWorkers<float>::Options options = rounding(encoding, Bsp{}, seed);
      options.workers_a_member = 2;
      ScriptedWorkers<float> workers(options);
      std::vector<Fnv1a> read(workers.size());
      std::map<Key, std::vector<float>> last;
      workers.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const float> row) {
        read[reader].add_words(std::as_bytes(row));
        if (clock != kLastClock) return;
        const auto of_key = last.emplace(key, std::vector<float>(row.begin(), row.end())).first;
        EXPECT_TRUE(std::ranges::equal(of_key->second, row)) << "reader " << reader;
      });
      for (std::uint32_t worker = 0; worker < workers.size(); ++worker) {
        const auto first = digests.emplace(worker, read[worker].value()).first;
        EXPECT_EQ(first->second, read[worker].value()) << "worker " << worker << ", seed " << seed;
      }
    }
  }
}

TEST(Encoding, bytes_are_half_and_a_quarter) {
  std::map<Encoding, Telemetry> met;
  for (const Encoding encoding : {Encoding::none, Encoding::bf16, Encoding::int8}) {
    ScriptedWorkers<float>::Options options = rounding(encoding, Bsp{}, 1);
    options.width = 4096;
    options.spread = Spread::all;
    ScriptedWorkers<float> workers(options);
    workers.run([](std::uint32_t, Clock, Key, std::span<const float>) {});
    met[encoding] = workers.table(0).telemetry();
  }
  const auto share = [&](Encoding encoding, auto of) { return static_cast<double>(of(met[encoding])) / static_cast<double>(of(met[Encoding::none])); };
  const auto added = [](const Telemetry& telemetry) { return telemetry.bytes.added; };
  EXPECT_NEAR(share(Encoding::bf16, added), 0.5, 0.01);
  EXPECT_NEAR(share(Encoding::int8, added), 0.25, 0.01);
  const auto a_row = [](const Telemetry& telemetry) { return telemetry.bytes.rows; };  // who added is told, too, where rows are rounded
  EXPECT_LT(share(Encoding::bf16, a_row), 0.75);
  EXPECT_NEAR(share(Encoding::int8, a_row) / share(Encoding::bf16, a_row), 0.5, 0.02);
}

TEST(Encoding, what_must_be_exact_is_refused) {
  EXPECT_THROW(check({.name = "a", .type = DType::i64, .encoding = Encoding::bf16}), Error);
  EXPECT_THROW(check({.name = "a", .consistency = Vap{1}, .encoding = Encoding::int8}), Error);
  EXPECT_THROW(check_survives({.name = "a", .consistency = Bsp{}, .encoding = Encoding::int8}), Error);
  EXPECT_NO_THROW(check_survives({.name = "a", .consistency = Essp{1}, .encoding = Encoding::int8}));
  EXPECT_THROW(encoding_from("fp8"), Error);
  const Spec spec{.name = "a", .rule = Rule::sgd(1), .encoding = Encoding::int8};
  EXPECT_EQ(spec_from(text_of(spec)).encoding, Encoding::int8);
}

}  // namespace
}  // namespace shoal::table

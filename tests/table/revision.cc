// Adaptive revision on servers, against the paper's algorithm in one place: whose gradient was computed with which values is what the test reads, and
// what the servers must find out by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"
#include "tests/from_environment.h"

namespace shoal::table {
namespace {

constexpr std::size_t kRevisionWidth = 2;
constexpr double kRevisionRate = 0.3;
const std::vector<Key> kRevisionKeys{1, 2, 3};

using Row = std::array<double, kRevisionWidth>;

// McMahan and Streeter, NIPS'14, algorithm 3.
struct Reference {
  Row x{1, 1}, g_bar{}, z{}, z_max{};

  void step(const Row& gradient, const Row& g_bar_old) {
    for (std::size_t i = 0; i < kRevisionWidth; ++i) {
      const double g = gradient[i], g_bck = g_bar[i] - g_bar_old[i], eta_old = z_max[i] > 0 ? kRevisionRate / std::sqrt(z_max[i]) : 0;
      z[i] += g * g + 2 * g * g_bck;
      z_max[i] = std::max(z[i], z_max[i]);
      const double eta = kRevisionRate / std::sqrt(z_max[i]);
      x[i] += -eta * g + (g_bck == 0 ? 0 : (eta_old - eta) * g_bck);
      g_bar[i] += g;
    }
  }
};

// Goal: rows are those of the algorithm. Method: workers read all rows, or add gradients to one and tick, as chance has it, and the network falls
// idle after each tick; so rows are pushed between a read and what is computed with it, and the oracle knows what copies hold: what there was
// when they came, that is at once, when the slowest had completed a clock, or when they were fetched. Nobody reads so seldom that rows are unsubscribed.
void expect_revision(const Consistency& consistency) {
  int late = 0;
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    std::mt19937_64 draw(seed);
    constexpr net::Rank kMembers = 3;
    net::InprocJob job(kMembers, {.seed = seed});
    std::vector<std::unique_ptr<Tables>> tables;
    std::vector<Table<double>> workers;
    for (net::Rank rank = 0; rank < kMembers; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank), TablesOptions{.servers = {0, 1}}));
    for (net::Rank rank = 0; rank < kMembers; ++rank) {
      workers.push_back(tables[rank]->worker().open<double>({.name = "w", .width = kRevisionWidth, .consistency = consistency, .initial = Initial::constant(1),
                                                             .rule = Rule::adaptive_revision(kRevisionRate, 0)}));
    }
    std::vector<Reference> now(kRevisionKeys.size());
    std::vector<std::vector<Reference>> copies(kMembers), read(kMembers);
    std::vector<double> values(kRevisionKeys.size() * kRevisionWidth);
    std::vector<bool> asked(kMembers);
    std::vector<int> unread(kMembers);
    const auto is_ready = [&](net::Rank w) {
      std::size_t at = 0;
      return workers[w].copy().ready(0, kRevisionKeys, at);
    };
    Clock slowest = 0;
    const auto settle = [&] {          // so that updates count in the order of the turns
      job.run();
      const Clock before = std::exchange(slowest, std::ranges::min(workers, {}, &Table<double>::clock).clock());
      const bool pushed = pushes_at_once(consistency) || (pushes(consistency) && slowest > before);
      for (net::Rank w = 0; w < kMembers; ++w) {
        const bool came = asked[w] && is_ready(w);
        if (came || (pushed && !copies[w].empty())) copies[w] = now;
        if (came) asked[w] = false;
      }
    };
    const auto reads = [&](net::Rank w) {
      if (!is_ready(w)) {
        asked[w] = true;
        settle();
      }
      if (!is_ready(w)) return;        // it is ahead of the others
      read[w] = copies[w];
      unread[w] = 0;
      workers[w].copy().read(0, kRevisionKeys, values);
      for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], read[w][i / kRevisionWidth].x[i % kRevisionWidth], 1e-9);
    };
    for (int turn = 0; turn < 150; ++turn) {
      const auto w = static_cast<net::Rank>(draw() % kMembers);
      if (!workers[w].copy().may_go_on(0)) continue;
      if (read[w].empty() || unread[w] == 7 || draw() % 2 == 0) {
        reads(w);
        continue;
      }
      const std::size_t row = draw() % kRevisionKeys.size();
      Row gradient;
      for (double& g : gradient) g = static_cast<double>(draw() % 1000) / 1000 - 0.5005;
      late += read[w][row].g_bar != now[row].g_bar;
      now[row].step(gradient, read[w][row].g_bar);
      workers[w].copy().add(0, std::span(&kRevisionKeys[row], 1), gradient);
      workers[w].copy().tick(0);
      ++unread[w];
      settle();
    }
    workers.clear();
    tables.clear();
  }
  EXPECT_GT(late, 500) << "gradients were hardly stale";
}

TEST(Revision, of_rows_that_are_pushed) {
  expect_revision(Async{});
  expect_revision(Essp{5});
  expect_revision(Cap{5});
}
TEST(Revision, of_rows_that_are_fetched) { expect_revision(Ssp{4}); }

// Goal: with nothing late it is Adagrad, to the bit.
TEST(Revision, nothing_late_is_adagrad) {
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Async{})}) {
    net::InprocJob job(2);
    std::vector<std::unique_ptr<Tables>> tables;
    std::vector<Table<float>> revised, plain;
    for (net::Rank rank = 0; rank < 2; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank)));
    for (net::Rank rank = 0; rank < 2; ++rank) {
      revised.push_back(tables[rank]->worker().open<float>({.name = "a", .consistency = consistency, .rule = Rule::adaptive_revision(0.1)}));
      plain.push_back(tables[rank]->worker().open<float>({.name = "b", .consistency = consistency, .rule = Rule::adagrad(0.1)}));
    }
    const Key key = 7;
    const auto read = [&](Table<float>& table) {
      std::size_t at = 0;
      float value = 0;
      job.run([&] { return table.copy().ready(0, std::span(&key, 1), at); });
      table.copy().read(0, std::span(&key, 1), std::span(&value, 1));
      return value;
    };
    for (int clock = 0; clock < 20; ++clock) {
      for (net::Rank rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(read(revised[rank]), read(plain[rank])) << "clock " << clock;
        const float gradient = std::cos(static_cast<float>(3 * clock + static_cast<int>(rank)));
        for (auto* table : {&revised[rank], &plain[rank]}) {
          table->copy().add(0, std::span(&key, 1), std::span(&gradient, 1));
          table->copy().tick(0);
        }
        if (!whole_clocks(consistency)) job.run();
      }
      job.run();
    }
    EXPECT_LT(read(revised[0]), -0.01F);
  }
}

TEST(Revision, what_it_cannot_promise_is_refused) {
  net::InprocJob job(1);
  Tables tables(job.member(0));
  EXPECT_THROW(tables.worker().open<float>({.name = "a", .consistency = Vap{1}, .rule = Rule::adaptive_revision(1)}), Error);
  EXPECT_THROW(check_survives({.name = "b", .consistency = Essp{1}, .rule = Rule::adaptive_revision(1)}), Error);
  EXPECT_NO_THROW(check_survives({.name = "b", .consistency = Bsp{}, .rule = Rule::adaptive_revision(1)}));
}

}  // namespace
}  // namespace shoal::table

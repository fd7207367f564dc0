// A run of two members and two steps, written by hand; every expected figure of the tests follows from this drawing.
// One character is 10 ms. Rank 1 is the slow one.
//
//   rank 0   FFBBBBwwnnO....   w waits for rank 1 before fc.weight, n waits for the network on fc.weight
//            fc.weight on its way      [30, 100) of a step: from the middle of backward to the end of n
//            conv.weight on its way    [50,  60)
//   rank 1   FFBBBBBBnnO....   backward takes 20 ms longer, so it waits for nobody
//            fc.weight                 [30, 100)
//   A step begins every 150 ms; between two lie 40 ms of data loading (other).
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "shoal/exchange/plan.h"
#include "shoal/observe/run_events.h"

namespace shoal::observe {

inline Instant ms(double milliseconds) { return Instant(Nanoseconds(static_cast<std::int64_t>(milliseconds * 1e6))); }

enum Names : std::uint32_t { kFc = 1, kConv = 2, kLoss = 3 };

inline RunEvents two_members() {
  RunEvents run;
  run.size = 2;
  run.unix_begin_ns = 1'700'000'000'000'000'000;
  run.clocks = "All members share one machine's clock.";
  run.names = {"", "fc.weight", "conv.weight", "loss"};
  run.ranks.resize(2);
  for (int rank = 0; rank < 2; ++rank) {
    RankEvents& member = run.ranks[static_cast<std::size_t>(rank)];
    member.who = {rank, 2, rank == 0 ? "fox" : "hen", "boot", 100 + rank, 0};
    const auto add = [&](EventKind kind, double begin, double end, std::int64_t step, int peer = -1, double value = 0,
                         std::uint32_t name = 0) {
      member.events.push_back({kind, ms(begin), ms(end), step, peer, value, name});
    };
    for (std::int64_t step = 0; step < 2; ++step) {
      const double t = static_cast<double>(step) * 150;
      add(EventKind::forward, t, t + 20, step);
      add(EventKind::backward, t + 20, t + (rank == 0 ? 60 : 80), step);
      add(EventKind::exchange, t + 30, t + 100, step, -1, 4000, kFc);
      if (rank == 0) {
        add(EventKind::exchange, t + 50, t + 60, step, -1, 100, kConv);
        add(EventKind::exposed, t + 60, t + 80, step, 1, 0, kFc);
      }
      add(EventKind::received, t + 80, t + 100, -1, 1 - rank, 2000);
      add(EventKind::exposed, t + 80, t + 100, step, -1, 0, kFc);
      add(EventKind::optimizer, t + 100, t + 110, step);
      add(EventKind::metric, t + 110, t + 110, step, -1, 2.5 - static_cast<double>(step), kLoss);
    }
  }
  return run;
}

// Two units: fc.weight alone, predicted exposed 15 ms; conv.weight 0.
inline exchange::ExchangePlan their_plan() {
  exchange::ExchangePlan plan;
  plan.ranks = 2;
  plan.tensors = {{"conv.weight", DType::f32, 25, 0, -1}, {"fc.weight", DType::f32, 1000, 1, -1}};
  plan.units = {{{1}, "ring", 65536, 1, 0.05, 0.015}, {{0}, "direct", 65536, 0, 0.01, 0}};
  return plan;
}

// A folder of its own for a test, gone at the end.
class OwnFolder {
 public:
  explicit OwnFolder(const std::string& test)
      : path_(std::filesystem::temp_directory_path() / ("shoal-observe-" + test + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~OwnFolder() { std::filesystem::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace shoal::observe

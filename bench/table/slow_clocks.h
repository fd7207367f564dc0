// Clocks of a worker whose work is a pause: some of them, drawn by a seed, take several times as long. The same for every consistency, so
// that what differs is who waits for whom.
#pragma once

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <thread>

#include "shoal/core/seed.h"
#include "shoal/core/time.h"

namespace shoal::bench {

struct SlowClocks {
  double milliseconds = 10;  // of a usual clock
  double factor = 5;         // of a slow one
  double share = 0.1;        // that is slow
  std::uint64_t seed = 1;

  double seconds(std::uint64_t clock, std::uint32_t worker) const {
    constexpr std::uint32_t site = 0x510c;
    return 1e-3 * milliseconds * (uniform(seed, clock, worker, site) < share ? factor : 1);
  }
  void pause(std::uint64_t clock, std::uint32_t worker) const { std::this_thread::sleep_for(Seconds(seconds(clock, worker))); }
};

inline void declare(CLI::App& app, SlowClocks& clocks) {
  app.add_option("--clock-ms", clocks.milliseconds, "of a usual clock");
  app.add_option("--slow", clocks.share, "so many of all clocks are");
  app.add_option("--factor", clocks.factor, "a slow clock takes so many usual ones");
  app.add_option("--seed", clocks.seed, "of who is slow when");
}

}  // namespace shoal::bench

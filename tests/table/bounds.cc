// The theory's bounds on what staleness costs (research notes 2.6), on the scripted network: (i) the regret of stochastic gradient descent over stale rows
// is below that of the re-derived theorem of SSP (Ho et al., NIPS'13, theorem 1), R <= sigma L^2 sqrt(T) + F^2 sqrt(T) / sigma +
// 4 s (P - 1) L^2 sigma sqrt(T) + c; (ii) a read lacks and has too much of at most 2 s (P - 1)
// updates, all near its own; (iii) the mean regret grows with staleness no faster than sqrt(s + 1), steps being the same.
#include <cmath>
#include <numbers>

#include "tests/from_environment.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

// (ii) The updates of the serial order are (clock, worker). An update is one clock's increments of one worker to a row; that of P workers at the same
// clock are P of them. A read at clock c that is at most s clocks stale lacks of each other worker only clocks in [c - s, c), and has beyond the
// serial order only clocks in [c, c + s + 1]: the gate lets nobody run further ahead of the slowest than s + 1 (2.7: one more than reads bear).
TEST(Bounds, a_read_lacks_and_has_too_much_of_a_window_of_updates) {
  for (const unsigned s : {0U, 1U, 3U}) {
    for (const Consistency& consistency : {Consistency(Ssp{s}), Consistency(Essp{s}), Consistency(Cap{s})}) {
      for (const std::uint64_t seed : seeds(20)) {
        SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
        ScriptedOptions options;
        options.consistency = consistency;
        options.seed = seed;
        options.members = static_cast<net::Rank>(2 + seed % 3);
        options.keys = 5;
        ScriptedWorkers<std::int64_t> counts(options);
        counts.run([&](std::uint32_t reader, Clock clock, Key key, std::span<const std::int64_t> row) {
          if (clock == counts.kOver) return;
          Clock lacking = 0, beyond = 0;  // updates
          for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
            Clock seen = 0;  // clocks of that worker of which the row has all
            while (seen < counts.clock(worker) && counts.added(worker, key, seen + 1) <= row[worker]) ++seen;
            const bool begun = row[worker] > counts.added(worker, key, seen);
            if (worker == reader) continue;
            EXPECT_GE(seen, std::min<Clock>(clock - s, counts.clock(worker))) << "of worker " << worker;
            EXPECT_LE(seen + begun, clock + s + 2) << "of worker " << worker;
            lacking += std::max<Clock>(0, std::min(clock, counts.clock(worker)) - seen);
            beyond += std::max<Clock>(0, seen + begun - clock - 1);
          }
          const Clock others = counts.size() - 1;
          EXPECT_LE(lacking, static_cast<Clock>(s) * others);
          EXPECT_LE(beyond, static_cast<Clock>(s + 1) * others);
        });
      }
    }
  }
}

// Least squares in the plane: P workers, one component f_t(x) = (a_t . x - b_t)^2 / 2 a clock each, t = (clock, worker), x within a disk of diameter
// F sqrt(2), so that D(x, x') = |x - x'|^2 / 2 <= F^2. Steps are -sigma / sqrt(t) of the gradient, projected by nobody: the optimum is inside, and what
// leaves the disk is seen by the assertion on it. Returns R / T, and what bounds it.
struct Regret {
  double mean, bound;
};

// steps_of: the staleness whose theorem says sigma.
Regret regret(unsigned s, unsigned steps_of, std::uint64_t seed) {
  constexpr net::Rank workers = 4;
  constexpr Clock clocks = 120;
  constexpr double radius = 2, F = radius * std::numbers::sqrt2,
                   L = 1.5 * (radius + 1.5);  // |a| <= 1.5, |a . x - b| <= 1.5 (radius + 1)
  constexpr double T = static_cast<double>(clocks) * workers;
  const double kappa = (s + 1.0) * workers, sigma = F / (L * std::sqrt(1 + 4 * (steps_of + 1.0) * workers));
  std::mt19937_64 draw(17);  // components: the same for all s and seeds
  std::uniform_real_distribution<double> any(-1, 1);
  struct Component {
    double a[2], b;
  };
  std::vector<Component> f(static_cast<std::size_t>(T));
  for (Component& one : f) {
    one.a[0] = any(draw);
    one.a[1] = any(draw);
    one.b = 0.6 * one.a[0] - 0.4 * one.a[1] + 0.3 * any(draw);
  }
  double xx = 0, xy = 0, yy = 0, xb = 0, yb = 0;  // the optimum: of the normal equations
  for (const Component& one : f) {
    xx += one.a[0] * one.a[0];
    xy += one.a[0] * one.a[1];
    yy += one.a[1] * one.a[1];
    xb += one.a[0] * one.b;
    yb += one.a[1] * one.b;
  }
  const double best[2] = {(xb * yy - yb * xy) / (xx * yy - xy * xy), (yb * xx - xb * xy) / (xx * yy - xy * xy)};
  const auto loss = [](const Component& one, const double* x) {
    return std::pow(one.a[0] * x[0] + one.a[1] * x[1] - one.b, 2) / 2;
  };

  net::InprocJob job(workers, {.seed = seed});
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<double>> at;
  for (net::Rank rank = 0; rank < workers; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank)));
  for (auto& of : tables) at.push_back(of->worker().open<double>({.name = "x", .width = 2, .consistency = Ssp{s}}));
  const Key key = 3;
  std::vector<Clock> done(workers);
  std::mt19937_64 moves(seed);
  double sum = 0;
  const auto can_move = [&](net::Rank rank) {
    std::size_t looked = 0;
    return done[rank] < clocks && at[rank].copy().may_go_on(0) && at[rank].copy().ready(0, std::span(&key, 1), looked);
  };
  for (Clock step = 0; step < clocks * workers; ++step) {
    EXPECT_TRUE(job.run([&] {
      for (net::Rank rank = 0; rank < workers; ++rank) {
        if (can_move(rank)) return true;
      }
      return false;
    }));
    auto rank = static_cast<net::Rank>(moves() % workers);
    while (!can_move(rank)) rank = (rank + 1) % workers;
    double x[2], move[2];
    at[rank].copy().read(0, std::span(&key, 1), x);
    EXPECT_LE(std::hypot(x[0], x[1]), radius);
    const auto t = static_cast<std::size_t>(done[rank]) * workers + rank;
    sum += loss(f[t], x) - loss(f[t], best);
    const double error = f[t].a[0] * x[0] + f[t].a[1] * x[1] - f[t].b, rate = sigma / std::sqrt(static_cast<double>(t + 1));
    for (int i = 0; i < 2; ++i) move[i] = -rate * error * f[t].a[i];
    at[rank].copy().add(0, std::span(&key, 1), std::span<const double>(move));
    at[rank].copy().tick(0);
    ++done[rank];
  }
  at.clear();
  tables.clear();
  const double c = 2.0 * s * (workers - 1) * kappa * L * L * sigma;
  return {sum / T, (std::sqrt(T) * (sigma * L * L + F * F / sigma + 4.0 * s * (workers - 1) * L * L * sigma) + c) / T};
}

TEST(Bounds, regret_is_below_the_theorems_and_grows_no_faster_than_the_root_of_staleness) {
  double x = 0, y = 0, xx = 0, xy = 0;  // of the fit of log R / T by log (s + 1)
  const std::vector<unsigned> all{0, 1, 3, 7, 15};
  for (const unsigned s : all) {
    double mean = 0;
    const auto some = seeds(4);
    for (const std::uint64_t seed : some) {
      for (const unsigned steps_of :
           {0U, s}) {  // at one size of steps for all, which is too large for what is stale, and at its own
        const Regret of = regret(s, steps_of, seed);
        EXPECT_LT(of.mean, of.bound) << "s " << s << ", seed " << seed << ", steps of s " << steps_of;
        if (steps_of == 0) mean += of.mean / static_cast<double>(some.size()) / (s == 0 ? 2 : 1);
      }
    }
    EXPECT_GT(mean, 0) << s;
    const double at = std::log(s + 1.0), value = std::log(mean);
    x += at;
    y += value;
    xx += at * at;
    xy += at * value;
  }
  const auto n = static_cast<double>(all.size());
  EXPECT_LE((n * xy - x * y) / (n * xx - x * x), 0.5);
}

}  // namespace
}  // namespace shoal::table

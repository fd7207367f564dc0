// Matrix factorization by learn::Factorization where now and then somebody is slow: a worker pauses for each clock, and for some clocks several
// times as long, the same ones by any consistency. bench/stragglers.py compares the time to an error.
//
//   shoal run -n 8 -- bench_table_stragglers ratings.csv --consistency ssp:3 --clock-ms 10
//   bench_table_stragglers ratings.csv --local 8                                               starts its members itself
//
// The pause stands where a long computation would, between a clock's read and its tick; it needs no core, so that many workers fit on few.
// The first member prints a JSON line an epoch: the held-out error, seconds, CPU seconds of all members, and megabytes that a member sent.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/member.h"
#include "bench/table/slow_clocks.h"
#include "shoal/learn/factorization.h"

namespace shoal {
namespace {

struct Options {
  std::string ratings, consistency = "bsp";
  bench::SlowClocks clocks;
  std::size_t batch = 500;
  unsigned epochs = 8;
  std::uint32_t local = 0;
};

double figure(const learn::Epoch& epoch, const std::string& name) {
  for (const auto& [known, value] : epoch.figures) {
    if (known == name) return value;
  }
  return 0;
}

double megabytes_sent(const net::Transport& transport) {
  double bytes = 0;
  for (net::Rank peer = 0; peer < transport.size(); ++peer) bytes += peer == transport.rank() ? 0 : static_cast<double>(transport.link(peer).sent);
  return 1e-6 * bytes;
}

int run_member(const Options& options) {
  const auto job = net::join();
  const net::Place& place = job->place();
  bench::Together together(job->transport());
  learn::FactorizationOptions how;
  how.batch = options.batch;
  how.consistency = table::consistency_from(options.consistency);
  learn::Source source;
  source.files = {options.ratings};
  learn::Factorization learner(job->transport(), learn::read_ratings(source, place.rank, place.size), how);
  std::uint64_t clock = 0;
  for (unsigned number = 1; number <= options.epochs; ++number) {
    together.total(0);  // begin together
    const double cpu = bench::cpu_seconds(), sent = megabytes_sent(job->transport());
    const learn::Epoch epoch = learner.learn([&](double) { options.clocks.pause(clock++, place.rank); });
    const double waited = together.total(epoch.waited), spent = together.total(bench::cpu_seconds() - cpu);
    const double megabytes = together.total(megabytes_sent(job->transport()) - sent) / place.size;
    if (place.rank != 0) continue;
    const nlohmann::ordered_json line{{"epoch", epoch.number}, {"RMSE", figure(epoch, "held-out RMSE")}, {"seconds", epoch.seconds},
                                      {"waited", waited / place.size}, {"cpu", spent}, {"clocks", clock}, {"megabytes", megabytes}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  together.total(0);
  return 0;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Options options;
  CLI::App app("a factorization among stragglers");
  app.add_option("ratings", options.ratings, "user, item, rating")->required()->check(CLI::ExistingFile);
  app.add_option("--consistency", options.consistency);
  app.add_option("--epochs", options.epochs)->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "ratings of a member in a clock");
  shoal::bench::declare(app, options.clocks);
  app.add_option("--local", options.local, "start so many members on this machine");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_table_stragglers", options.local, argv, [&] { return shoal::run_member(options); });
}

// How stale what workers read is, by consistency: each worker keeps count of its clocks in a column of shared rows, so that a row that is read
// shows how far everybody's increments in it have come (the clock differential of Dai et al., AAAI'15).
//
//   SHOAL_SHARED_MEMORY=0 shoal run -n 32 -- bench_table_staleness --servers 2 --consistency ssp:3 essp:3
//   bench_table_staleness --local 4                                                          starts its members itself
//
// A clock: all rows are read, the worker pauses (slow_clocks.h), adds one to its column of each, and ticks. Differential: what is read of
// another worker less the reader's own clock, so that who is ahead of the reader counts above zero. What the table itself counted, how many
// clocks the age of a row was behind, stands beside it. The last rows are compared with everybody's clocks. Each member prints a JSON line a
// consistency: how many reads saw each differential from -63 to 63, how many rows were so many clocks behind, seconds, and how many bytes of rows it heard.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/member.h"
#include "bench/table/slow_clocks.h"
#include "shoal/table/tables.h"

namespace shoal {
namespace {

struct Options {
  std::vector<std::string> consistencies{"ssp:3", "essp:3"};
  bench::SlowClocks clocks;
  std::uint32_t servers = 1, rows = 8, length = 300, warmup = 60, local = 0;  // length: clocks that count, after the warm-up
};

class Member {
 public:
  Member(net::Job& job, const Options& options)
      : options_(options), rank_(job.place().rank), size_(job.place().size), together_(job.transport()), tables_(job.transport(), roles(options)) {}

  // Whether every increment was in the end.
  bool measure(const std::string& consistency) {
    const table::Spec spec{.name = "counts" + std::to_string(opened_++), .width = size_, .consistency = table::consistency_from(consistency)};
    auto table = tables_.worker().open<std::int32_t>(spec);
    std::vector<table::Key> keys(options_.rows);
    for (std::size_t row = 0; row < keys.size(); ++row) keys[row] = row * 0x9e3779b97f4a7c15u;
    std::vector<std::int32_t> values(keys.size() * size_), mine(keys.size() * size_);
    for (std::size_t row = 0; row < keys.size(); ++row) mine[row * size_ + rank_] = 1;
    const auto clocks = static_cast<std::int32_t>(options_.warmup + options_.length);
    std::array<std::uint64_t, kReach * 2 + 1> seen{};
    table::Telemetry before;
    together_.total(0);
    Instant begin = steady_now();
    for (std::int32_t clock = 0; clock < clocks; ++clock) {
      if (clock == static_cast<std::int32_t>(options_.warmup)) {
        before = table.telemetry();
        begin = steady_now();
      }
      table.read(keys, values);
      if (clock >= static_cast<std::int32_t>(options_.warmup)) {
        for (std::size_t at = 0; at < values.size(); ++at) {
          if (at % size_ != rank_) ++seen[static_cast<std::size_t>(std::clamp(values[at] - clock, -kReach, kReach) + kReach)];
        }
      }
      options_.clocks.pause(static_cast<std::uint64_t>(clock), rank_);
      table.add(keys, mine);
      table.tick();
    }
    const double seconds = seconds_between(begin, steady_now());
    const table::Telemetry counted = table.telemetry();
    table.barrier();
    table.read(keys, values);
    const bool right = std::ranges::all_of(values, [&](std::int32_t value) { return value == clocks; });
    nlohmann::ordered_json line{{"consistency", consistency}, {"seconds", seconds}, {"seen", seen}, {"right", right},
                                {"heard", counted.bytes.rows - before.bytes.rows}};
    for (std::size_t bin = 0; bin < table::Telemetry::kBins; ++bin) line["behind"].push_back(counted.behind[bin] - before.behind[bin]);
    for (std::size_t cause = 0; cause < table::kCauses; ++cause) {
      line["waited"][table::name(static_cast<table::Cause>(cause))] = counted.waited[cause] - before.waited[cause];
    }
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
    together_.total(0);
    return right;
  }

 private:
  static constexpr std::int32_t kReach = 63;  // what is further off counts as that
  static table::TablesOptions roles(const Options& options) {
    table::TablesOptions roles;
    for (net::Rank rank = 0; rank < options.servers; ++rank) roles.servers.push_back(rank);
    return roles;
  }

  const Options& options_;
  const net::Rank rank_, size_;
  bench::Together together_;
  table::Tables tables_;
  unsigned opened_ = 0;
};

int run_member(const Options& options) {
  const auto job = net::join();
  Member member(*job, options);
  bool right = true;
  for (const std::string& consistency : options.consistencies) right = member.measure(consistency) && right;
  return right ? 0 : 1;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Options options;
  CLI::App app("how stale reads are");
  app.add_option("--consistency", options.consistencies, "one or more, in turn");
  app.add_option("--servers", options.servers, "the first members serve; all work")->check(CLI::PositiveNumber);
  app.add_option("--rows", options.rows)->check(CLI::PositiveNumber);
  app.add_option("--clocks", options.length, "of each worker, that count")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "clocks before them");
  shoal::bench::declare(app, options.clocks);
  app.add_option("--local", options.local, "start so many members on this machine");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_table_staleness", options.local, argv, [&] { return shoal::run_member(options); });
}

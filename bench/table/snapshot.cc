// What a snapshot of a table costs those who go on: how long a worker's clock takes (read some rows, add to them, tick), the longest and the
// usual one, without a snapshot, while one is being written, and where all stop for it at a barrier.
//
//   bench_table_snapshot --local 2 --rows 200000 --width 64 --folder /tmp/bench-snapshot      starts its members itself
//
// Rounds of the three take turns. Each member serves and works. Restored rows are compared with those of the moment of the snapshot before anything
// is printed. Times are rank 0's.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/member.h"
#include "shoal/table/tables.h"

namespace shoal {
namespace {

struct Options {
  std::size_t rows = 200'000, width = 64, touched = 500;  // touched: rows a clock
  std::uint32_t clocks = 300, rounds = 5, local = 0;      // clocks: of each round
  std::string folder = (std::filesystem::temp_directory_path() / "shoal-bench-snapshot").string(), consistency = "essp:3";
};

class Member {
 public:
  Member(net::Job& job, const Options& options)
      : options_(options), rank_(job.place().rank), together_(job.transport()), tables_(job.transport()),
        table_(tables_.worker().open<float>({.name = "rows", .width = options.width, .consistency = table::consistency_from(options.consistency)})),
        random_(rank_), folder_((std::filesystem::path(options.folder) / "rows").string()) {}

  int measure() {
    fill();
    const bool equal = restores();
    run("warm", false);
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      run("no snapshot", false);
      run("one is written", true);
      stop();
    }
    print(equal);
    table_.barrier();
    std::error_code none;  // servers may be removing parts that were replaced
    if (rank_ == 0) std::filesystem::remove_all(folder_, none);
    return equal ? 0 : 1;
  }

 private:
  static std::vector<table::Key> keys(std::size_t begin, std::size_t count) {
    std::vector<table::Key> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = (begin + i) * 0x9e3779b97f4a7c15u;
    return keys;
  }
  template <class Visit>  // visit(keys): all rows, piece by piece
  void each_piece(const Visit& visit) const {
    constexpr std::size_t piece = 10'000;
    for (std::size_t begin = 0; begin < options_.rows; begin += piece) visit(keys(begin, std::min(piece, options_.rows - begin)));
  }
  void fill() {
    if (rank_ == 0) {
      each_piece([&](const auto& some) {
        std::vector<float> values(some.size() * options_.width);
        for (float& value : values) value = static_cast<float>(random_() % 1000) / 7;
        table_.assign(some, values);
      });
    }
    table_.barrier();
  }
  std::vector<float> all() {
    std::vector<float> values, of_some;
    each_piece([&](const auto& some) {
      of_some.resize(some.size() * options_.width);
      table_.read(some, of_some);
      values.insert(values.end(), of_some.begin(), of_some.end());
    });
    return values;
  }
  // Whether rows that were changed are what they were. Where all are read, all are pushed: so by rank 0 alone, of half of them.
  bool restores() {
    clock();
    table_.barrier();
    const auto before = rank_ == 0 ? all() : std::vector<float>{};
    if (rank_ == 0) table_.snapshot(folder_);
    table_.barrier();
    for (int i = 0; i < 20; ++i) clock();
    table_.restore(folder_);
    const bool equal = rank_ != 0 || all() == before;
    table_.barrier();
    return together_.total(equal ? 0 : 1) == 0;
  }
  void clock() {
    const auto some = keys(random_() % (options_.rows - options_.touched), options_.touched);
    values_.resize(some.size() * options_.width);
    table_.read(some, values_);
    std::ranges::fill(values_, 1.0F);                // sums stay finite, however many clocks
    table_.add(some, values_);
    table_.tick();
  }
  void run(const std::string& name, bool snapshot) {
    table_.barrier();
    std::optional<table::Snapshot> taken;
    Instant asked;
    const auto finish = [&] {
      taken->wait();
      written_after_.push_back(Seconds(steady_now() - asked).count());
      taken.reset();
    };
    for (std::uint32_t i = 0; i < options_.clocks; ++i) {
      if (snapshot && rank_ == 0 && !taken) {  // one after the other: one is under way in every clock that counts
        asked = steady_now();
        taken = table_.snapshot_begin(folder_);
      }
      const Instant begin = steady_now();
      clock();
      seconds_[name].push_back(Seconds(steady_now() - begin).count());
      if (taken && taken->is_written()) finish();
    }
    if (taken) finish();
  }
  // All wait until it is written: what it takes where nothing goes on.
  void stop() {
    table_.barrier();
    const Instant begin = steady_now();
    if (rank_ == 0) table_.snapshot(folder_);
    table_.barrier();
    stops_.push_back(Seconds(steady_now() - begin).count());
  }
  static double quantile(std::vector<double>& values, double share) {
    std::ranges::sort(values);
    return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
  }
  void print(bool equal) {
    if (rank_ != 0) return;
    std::printf("%zu rows x %zu floats (%.0f MB), %u members, %s, %zu rows a clock, %u rounds of %u clocks; restored rows are %s\n", options_.rows, options_.width,
                1e-6 * static_cast<double>(options_.rows * options_.width * sizeof(float)), together_.runner().size(), options_.consistency.c_str(), options_.touched,
                options_.rounds, options_.clocks, equal ? "equal" : "WRONG");
    std::printf("%16s %10s %10s %10s %10s  ms a clock, of %zu\n", "", "p50", "p99", "p99.9", "longest",
                seconds_["no snapshot"].size());
    for (const char* const name : {"no snapshot", "one is written"}) {
      auto& values = seconds_[name];
      std::printf("%16s %10.2f %10.2f %10.2f %10.2f\n", name, 1e3 * quantile(values, 0.5), 1e3 * quantile(values, 0.99), 1e3 * quantile(values, 0.999),
                  1e3 * quantile(values, 1));
    }
    std::printf("written after %.0f ms; all stopped for it: %.0f ms\n", 1e3 * quantile(written_after_, 0.5), 1e3 * quantile(stops_, 0.5));
  }

  const Options& options_;
  const net::Rank rank_;
  bench::Together together_;
  table::Tables tables_;
  table::Table<float> table_;
  std::mt19937_64 random_;
  const std::string folder_;
  std::vector<float> values_;
  std::map<std::string, std::vector<double>> seconds_;
  std::vector<double> written_after_, stops_;
};

int run_member(const Options& options) {
  const auto job = net::join();
  return Member(*job, options).measure();
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Options options;
  CLI::App app("snapshots of a table");
  app.add_option("--rows", options.rows);
  app.add_option("--width", options.width, "floats of a row");
  app.add_option("--touched", options.touched, "rows that each worker reads and adds to in a clock; fewer than all");
  app.add_option("--clocks", options.clocks, "of each round")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--consistency", options.consistency);
  app.add_option("--folder", options.folder, "where they are written, and removed");
  app.add_option("--local", options.local, "start so many members on this machine");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_table_snapshot", options.local, argv, [&] { return shoal::run_member(options); });
}

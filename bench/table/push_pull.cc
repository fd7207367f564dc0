// Servers and workers of a table: how long a worker takes until its rows are counted in, and until it has read the new sums.
//
//   shoal run -n 2 -- bench_table_push_pull --servers 1 --cases 4x1000000 10000x64     place from the environment
//   bench_table_push_pull --local 2 --servers 1 --cases 1x1 --repeats 2000             starts its members itself
//
// The first members serve, the others work. Push: rows are added, then a barrier says that servers have them. Pull: rows are added, the clock
// ticks, and they are read with all that was added before. In blocks, each a table with a clock of its own: the sums of one come back
// while the next one leaves; more blocks than rows cut each row into slices of its columns. Sums are checked in tables of their own before anything is timed, and once more after it.
// The first worker prints one JSON line a case: seconds of each repetition, CPU seconds of all members together per repetition.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/member.h"
#include "shoal/table/tables.h"

namespace shoal {
namespace {

struct Options {
  std::vector<std::string> cases{"4x1000000", "10000x64", "1000000x1", "1x1"};  // rows x elements
  std::string operation = "push";
  std::uint32_t servers = 1, repeats = 10, warmup = 2, blocks = 1, local = 0;
};

class Member {
 public:
  Member(net::Job& job, const Options& options)
      : options_(options), rank_(job.place().rank), together_(job.transport()), tables_(job.transport(), roles(job.place().size, options)) {}

  void measure(const std::string& rows_by_width) {
    const std::size_t times = rows_by_width.find('x');
    rows_ = std::stoull(rows_by_width.substr(0, times));
    width_ = std::stoull(rows_by_width.substr(times + 1));
    const bool right = repeat(rows_by_width + "-checked", 2, nullptr);
    std::vector<double> seconds;
    const bool still_right = repeat(rows_by_width, options_.repeats, &seconds);
    if (rank_ != options_.servers) return;
    const nlohmann::ordered_json line{{"case", rows_by_width}, {"times", seconds}, {"cpu", cpu_ / options_.repeats}, {"right", right && still_right}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

 private:
  static table::TablesOptions roles(net::Rank size, const Options& options) {
    table::TablesOptions roles;
    for (net::Rank rank = 0; rank < size; ++rank) (rank < options.servers ? roles.servers : roles.workers).push_back(rank);
    return roles;
  }

  // Whether all sums were right.
  bool repeat(const std::string& name, std::uint32_t repeats, std::vector<double>* seconds) {
    const bool pull = options_.operation == "pull", timed = seconds != nullptr;
    const std::uint32_t workers = together_.runner().size() - options_.servers, warmup = timed ? options_.warmup : 0;
    if (rank_ < options_.servers) {
      together_.total(0);
      const double cpu = bench::cpu_seconds();
      together_.total(0);
      cpu_ = together_.total(bench::cpu_seconds() - cpu);
      return together_.total(0) == 0;
    }
    std::vector<table::Key> keys(rows_);
    for (std::size_t row = 0; row < rows_; ++row) keys[row] = std::numeric_limits<table::Key>::max() / rows_ * row;
    const std::vector<float> ones(rows_ * width_, 1);
    std::vector<float> values(rows_ * width_);
    const table::Consistency consistency = pull ? table::Consistency(table::Ssp{0}) : table::Async{};
    struct Block {
      std::span<const table::Key> keys;
      std::span<const float> ones;
      std::span<float> values;
      table::Table<float> table;
    };
    std::vector<Block> blocks;
    table::Worker worker = tables_.worker();
    const std::size_t slices = std::clamp<std::size_t>(options_.blocks / rows_, 1, width_), row_blocks = std::min<std::size_t>(rows_, options_.blocks);
    for (std::size_t block = 0; block < row_blocks; ++block) {
      const std::size_t begin = rows_ * block / row_blocks, count = rows_ * (block + 1) / row_blocks - begin;
      for (std::size_t slice = 0; slice < slices; ++slice) {
        const std::size_t column = width_ * slice / slices, width = width_ * (slice + 1) / slices - column, place = begin * width_ + column;
        const table::Spec spec{.name = name + "-" + std::to_string(blocks.size()), .width = width, .consistency = consistency};
        blocks.push_back({std::span(keys).subspan(begin, count), std::span(ones).subspan(place, count * width),
                          std::span(values).subspan(place, count * width), worker.open<float>(spec)});
      }
    }
    const auto once = [&] {
      for (Block& block : blocks) {
        block.table.add(block.keys, block.ones);
        if (!pull) continue;
        block.table.tick();
        block.table.intend(block.keys);
      }
      for (Block& block : blocks) pull ? void(block.table.read(block.keys, block.values)) : block.table.barrier();
    };
    for (std::uint32_t i = 0; i < warmup; ++i) once();
    together_.total(0);  // begin together
    const double cpu = bench::cpu_seconds();
    bool right = true;
    for (std::uint32_t i = 0; i < repeats; ++i) {
      const Instant begin = steady_now();
      once();
      if (timed) seconds->push_back(Seconds(steady_now() - begin).count());
      if (pull && !timed) right = right && *std::ranges::min_element(values) >= static_cast<float>(i + 1);
    }
    together_.total(0);
    cpu_ = together_.total(bench::cpu_seconds() - cpu);
    for (Block& block : blocks) {
      block.table.barrier();
      block.table.read(block.keys, block.values);
    }
    const auto sum = static_cast<float>((repeats + warmup) * workers);
    right = right && std::ranges::all_of(values, [&](float value) { return value == sum; });
    return together_.total(right ? 0 : 1) == 0;
  }

  const Options& options_;
  const net::Rank rank_;
  bench::Together together_;
  table::Tables tables_;
  std::size_t rows_ = 0, width_ = 0;
  double cpu_ = 0;
};

int run_member(const Options& options) {
  const auto job = net::join();
  Member member(*job, options);
  for (const std::string& rows_by_width : options.cases) member.measure(rows_by_width);
  return 0;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Options options;
  CLI::App app("rows of tables");
  app.add_option("--cases", options.cases, "rows x elements of a row");
  app.add_option("--operation", options.operation)->check(CLI::IsMember({"push", "pull"}));
  app.add_option("--servers", options.servers, "so many members serve; the others work");
  app.add_option("--repeats", options.repeats, "in a row");
  app.add_option("--warmup", options.warmup);
  app.add_option("--blocks", options.blocks, "that are pulled one behind the other")->check(CLI::PositiveNumber);
  app.add_option("--local", options.local, "start so many members on this machine");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_table_push_pull", options.local, argv, [&] { return shoal::run_member(options); });
}

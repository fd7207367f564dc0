// Word pairs of a text counted in a table of integers by the members that work; bench/table.py compares it with ps-lite.
//
//   shoal run -n 2 -- bench_table_pairs --servers 1 --ids FILE       32-bit word numbers, 2^32 - 1 behind each document
//   bench_table_pairs --local 2 --ids FILE                           starts its members itself
//
// Each batch of documents is added and is a clock of an asynchronous table; a barrier ends the count. Then the first worker compares every
// count with a serial recount, and prints one JSON line: seconds of its counting, CPU seconds of all members together.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/member.h"
#include "bench/table/pairs.h"
#include "shoal/table/tables.h"

namespace shoal {
namespace {

struct Options {
  std::string ids;
  std::uint32_t servers = 1, local = 0;
};

bool all_counts(table::Table<std::int32_t>& table, const pairs::Ids& ids) {
  constexpr std::size_t at_once = 1 << 18;
  std::vector<table::Key> keys;
  std::vector<std::int32_t> expected, counted;
  pairs::recount(ids, keys, expected);
  bool right = !keys.empty();
  for (std::size_t begin = 0; begin < keys.size(); begin += at_once) {
    const auto some = std::span<const table::Key>(keys).subspan(begin, std::min(at_once, keys.size() - begin));
    counted.resize(some.size());
    table.read(some, counted);
    right = right && std::equal(counted.begin(), counted.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return right;
}

int run_member(const Options& options) {
  const auto job = net::join();
  const net::Rank rank = job->place().rank, size = job->place().size;
  bench::Together together(job->transport());
  table::TablesOptions roles;
  for (net::Rank member = 0; member < size; ++member) (member < options.servers ? roles.servers : roles.workers).push_back(member);
  table::Tables tables(job->transport(), roles);
  pairs::Ids ids;
  if (rank >= options.servers) ids = pairs::read_ids(options.ids);
  together.total(0);  // begin together
  const double cpu = bench::cpu_seconds();
  const Instant begin = steady_now();
  if (rank < options.servers) {
    together.total(0);
    together.total(bench::cpu_seconds() - cpu);
    together.total(0);
    return 0;
  }
  auto table = tables.worker().open<std::int32_t>({.name = "pairs", .consistency = table::Async{}});
  std::vector<std::int32_t> ones;
  pairs::each_batch(ids, rank - options.servers, size - options.servers, [&](const std::vector<std::uint64_t>& found) {
    ones.resize(found.size(), 1);
    table.add(found, std::span(ones).first(found.size()));  // sums what is repeated
    table.tick();
  });
  table.barrier();
  const double seconds = Seconds(steady_now() - begin).count();
  together.total(0);
  const double spent = together.total(bench::cpu_seconds() - cpu);
  if (rank == options.servers) {
    const nlohmann::ordered_json line{{"case", "pairs"}, {"times", {seconds}}, {"cpu", spent}, {"right", all_counts(table, ids)}};
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
  CLI::App app("word pairs");
  app.add_option("--ids", options.ids, "the text")->required()->check(CLI::ExistingFile);
  app.add_option("--servers", options.servers, "so many members serve; the others work");
  app.add_option("--local", options.local, "start so many members on this machine");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_table_pairs", options.local, argv, [&] { return shoal::run_member(options); });
}

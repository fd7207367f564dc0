// Samples out of files that lie in the page cache, on one core.
//   build/release/bench/data/bench_data_read --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
// bytes_per_second counts text, also where the file is packed. The argument is the text's size in MB. Each case checks what was read against what was
// written before it is timed.
#include <benchmark/benchmark.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "shoal/data/libsvm.h"
#include "shoal/data/matrix_market.h"
#include "shoal/data/triples.h"

namespace {

namespace fs = std::filesystem;
using namespace shoal::data;

struct Text {
  std::string text;
  std::uint64_t samples = 0;
};

template <class... Parts>
void add(std::string& text, const char* form, Parts... parts) {
  char line[128];
  text.append(line, static_cast<std::size_t>(std::snprintf(line, sizeof line, form, parts...)));
}

// As a9a: 14 ones in 123 columns.
Text ones(std::size_t bytes) {
  Text made;
  for (std::mt19937_64 random(1); made.text.size() < bytes; ++made.samples) {
    made.text += random() % 4 == 0 ? "+1" : "-1";
    for (int i = 0; i < 14; ++i) add(made.text, " %d:1", static_cast<int>(9 * i + random() % 9 + 1));
    made.text += '\n';
  }
  return made;
}

// As sector: 163 reals of five decimals in 55,197 columns.
Text reals(std::size_t bytes) {
  Text made;
  for (std::mt19937_64 random(1); made.text.size() < bytes; ++made.samples) {
    add(made.text, "%d", static_cast<int>(random() % 105 + 1));
    for (int i = 0; i < 163; ++i)
      add(made.text, " %d:%.5g", static_cast<int>(338 * i + random() % 338 + 1), static_cast<double>(random() % 20'000) / 1e5);
    made.text += '\n';
  }
  return made;
}

// As MovieLens-1M: by user, 6,040 users and 3,706 items.
Text ratings(std::size_t bytes) {
  Text made;
  for (std::mt19937_64 random(1); made.text.size() < bytes; ++made.samples) {
    add(made.text, "%d,%d,%d\n", static_cast<int>(made.samples / 166 % 6040 + 1), static_cast<int>(random() % 3706 + 1),
        static_cast<int>(random() % 5 + 1));
  }
  return made;
}

Text coordinates(std::size_t bytes) {
  Text made;
  std::string lines;
  for (std::mt19937_64 random(1); lines.size() < bytes; ++made.samples) {
    add(lines, "%d %d %.6g\n", static_cast<int>(random() % 10'000 + 1), static_cast<int>(random() % 10'000 + 1),
        static_cast<double>(random() % 1'000'000) / 1e3);
  }
  made.text = "%%MatrixMarket matrix coordinate real general\n10000 10000 " + std::to_string(made.samples) + "\n" + lines;
  return made;
}

std::uint64_t read_lines(const fs::path& file) {
  Lines lines({file});
  std::uint64_t count = 0;
  for (std::string_view line; lines.next(line);) ++count;
  return count;
}
std::uint64_t read_rows(const fs::path& file) { return read_libsvm({file}).first.size(); }
std::uint64_t read_ratings(const fs::path& file) { return read_triples({file}).first.size(); }
std::uint64_t read_matrix(const fs::path& file) { return read_matrix_market(file).first.size(); }

void run(benchmark::State& state, Text (*make)(std::size_t), std::uint64_t (*read)(const fs::path&), bool packed) {
  const Text made = make(static_cast<std::size_t>(state.range(0)) * 1'000'000);
  const fs::path file = fs::temp_directory_path() / ("shoal-bench-data-" + std::to_string(::getpid()));
  if (packed) {
    gzFile out = ::gzopen(file.c_str(), "wb1");
    ::gzwrite(out, made.text.data(), static_cast<unsigned>(made.text.size()));
    ::gzclose(out);
  } else {
    std::ofstream(file, std::ios::binary) << made.text;
  }
  if (read(file) != made.samples) state.SkipWithError("what was read is not what was written");
  for (auto _ : state) benchmark::DoNotOptimize(read(file));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(made.text.size()));
  fs::remove(file);
}

void sizes(benchmark::internal::Benchmark* benchmark) { benchmark->Arg(1)->Arg(100)->Unit(benchmark::kMillisecond); }

BENCHMARK_CAPTURE(run, lines, ratings, read_lines, false)->Apply(sizes);
BENCHMARK_CAPTURE(run, libsvm_ones, ones, read_rows, false)->Apply(sizes);
BENCHMARK_CAPTURE(run, libsvm_reals, reals, read_rows, false)->Apply(sizes);
BENCHMARK_CAPTURE(run, libsvm_reals_gzip, reals, read_rows, true)->Apply(sizes);
BENCHMARK_CAPTURE(run, ratings, ratings, read_ratings, false)->Apply(sizes);
BENCHMARK_CAPTURE(run, matrix_market, coordinates, read_matrix, false)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();

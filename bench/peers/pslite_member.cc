// The peer: a scheduler, server or worker of ps-lite (DMLC_* variables say which), started by bench/table.py.
//   pslite_member OPERATION BLOCKS REPEATS WARMUP CASE...     OPERATION: push, pull; CASE: rows x elements of a row, 10000x64
//   pslite_member pairs FILE                                  word pairs of a text, counted as bench/table/pairs.cc does
// Servers add what is pushed to a hash map, of numbers where rows have one element (as the library's own handle does), else of vectors. A
// push waits until servers have answered; a pull sends and gets in one call, or in BLOCKS calls that are waited for together.
// Workers hand over their memory without a copy. Each process prints its CPU seconds per repetition, a line a case; the
// first worker also the seconds of each repetition and whether the sums were right.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/table/pairs.h"
#include "ps/ps.h"

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void together() { ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup + ps::kServerGroup); }

class Store {
 public:
  void operator()(const ps::KVMeta& meta, const ps::KVPairs<float>& data, ps::KVServer<float>* server) {
    ps::KVPairs<float> answer;
    const std::size_t rows = data.keys.size(), width = meta.push ? data.vals.size() / rows : static_cast<std::size_t>(meta.cmd);
    if (meta.pull) {
      answer.keys = data.keys;
      answer.vals.resize(rows * width);
    }
    for (std::size_t i = 0; i < rows; ++i) {
      float* const row = width == 1 ? &numbers_[data.keys[i]] : vector(data.keys[i], width);
      const float* from = data.vals.data() + i * width;
      if (meta.push) {
        for (std::size_t k = 0; k < width; ++k) row[k] += from[k];
      }
      if (meta.pull) std::copy_n(row, width, answer.vals.data() + i * width);
    }
    server->Response(meta, answer);
  }
  void clear() { numbers_.clear(), vectors_.clear(); }

 private:
  float* vector(ps::Key key, std::size_t width) {
    std::vector<float>& values = vectors_[key];
    if (values.empty()) values.resize(width);
    return values.data();
  }

  std::unordered_map<ps::Key, float> numbers_;
  std::unordered_map<ps::Key, std::vector<float>> vectors_;
};

struct Task {
  std::string operation;
  std::size_t blocks = 1;
  int repeats = 10, warmup = 2;
};

void work(ps::KVWorker<float>& worker, const Task& task, const std::string& rows_by_width) {
  const std::size_t rows = std::stoull(rows_by_width), width = std::stoull(rows_by_width.substr(rows_by_width.find('x') + 1));
  ps::SArray<ps::Key> keys(rows);
  for (std::size_t row = 0; row < rows; ++row) keys[row] = ps::kMaxKey / rows * row;
  ps::SArray<float> ones(rows * width, 1), values(rows * width, 0);
  const int cmd = static_cast<int>(width);
  std::vector<ps::SArray<float>> into(task.blocks);
  const auto once = [&] {
    if (task.operation == "push") return worker.Wait(worker.ZPush(keys, ones, {}, cmd));
    std::vector<int> asked;
    for (std::size_t block = 0; block < task.blocks; ++block) {
      const std::size_t begin = rows * block / task.blocks, end = rows * (block + 1) / task.blocks;
      into[block] = values.segment(begin * width, end * width);
      const auto some = ones.segment(begin * width, end * width);
      asked.push_back(worker.ZPushPull(keys.segment(begin, end), some, &into[block], nullptr, cmd));
    }
    for (const int request : asked) worker.Wait(request);
  };
  const auto all_are = [&](int sum) {
    worker.Wait(worker.ZPull(keys, &values, nullptr, cmd));
    bool right = true;
    for (std::size_t i = 0; i < values.size(); ++i) right = right && values[i] == static_cast<float>(sum);
    return right;
  };
  once();
  together();
  bool right = all_are(ps::NumWorkers());
  together();
  for (int i = 0; i < task.warmup; ++i) once();
  together();
  std::vector<double> times;
  const double cpu = cpu_seconds();
  for (int i = 0; i < task.repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  together();
  const double spent = cpu_seconds() - cpu;
  right = all_are((1 + task.warmup + task.repeats) * ps::NumWorkers()) && right;
  together();
  std::printf("{\"case\": \"%s\", \"cpu\": %.9f", rows_by_width.c_str(), spent / task.repeats);
  if (ps::MyRank() == 0) {
    std::printf(", \"right\": %s, \"times\": [", right ? "true" : "false");
    for (std::size_t i = 0; i < times.size(); ++i) std::printf("%s%.9f", i ? ", " : "", times[i]);
    std::printf("]");
  }
  std::printf("}\n");
}

// Each batch, sorted and with each pair once as the library wants it, is pushed behind the ones before, and at last all are waited for.
void count_pairs(ps::KVWorker<int>& worker, const std::string& path) {
  const pairs::Ids ids = pairs::read_ids(path);
  together();
  const double cpu = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int> asked;
  const auto rank = static_cast<std::size_t>(ps::MyRank()), workers = static_cast<std::size_t>(ps::NumWorkers());
  pairs::each_batch(ids, rank, workers, [&](std::vector<std::uint64_t>& found) {
    std::vector<ps::Key> keys;
    std::vector<int> counts;
    pairs::tally(found, keys, counts);
    asked.push_back(worker.Push(keys, counts));
  });
  for (const int request : asked) worker.Wait(request);
  together();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("{\"case\": \"pairs\", \"cpu\": %.9f", cpu_seconds() - cpu);
  if (ps::MyRank() == 0) {
    std::vector<ps::Key> keys;
    std::vector<int> expected, counted;
    pairs::recount(ids, keys, expected);
    worker.Wait(worker.Pull(keys, &counted));
    std::printf(", \"right\": %s, \"times\": [%.9f]", counted == expected ? "true" : "false", seconds);
  }
  std::printf("}\n");
  together();
}

int run_pairs(const std::string& path) {
  if (ps::IsServer()) {
    ps::KVServer<int> server(0);
    server.set_request_handle(ps::KVServerDefaultHandle<int>());
    together();
    together();
    const double cpu = cpu_seconds();
    together();
    std::printf("{\"case\": \"pairs\", \"cpu\": %.9f}\n", cpu_seconds() - cpu);
    together();
    ps::Finalize(0, true);
    return 0;
  }
  if (ps::IsWorker()) {
    ps::KVWorker<int> worker(0, 0);
    together();
    count_pairs(worker, path);
  }
  ps::Finalize(0, true);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "pairs") {
    ps::Start(0);
    return run_pairs(argv[2]);
  }
  if (argc < 6) {
    std::fprintf(stderr, "usage: pslite_member push|pull BLOCKS REPEATS WARMUP CASE...\n       pslite_member pairs FILE\n");
    return 2;
  }
  const Task task{argv[1], std::stoull(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])};
  ps::Start(0);
  if (ps::IsServer()) {
    Store store;
    ps::KVServer<float> server(0);
    server.set_request_handle([&](const ps::KVMeta& meta, const ps::KVPairs<float>& data, ps::KVServer<float>* of) { store(meta, data, of); });
    together();  // what comes earlier makes a server wait for itself
    for (int a = 5; a < argc; ++a) {
      together();
      together();
      together();
      const double cpu = cpu_seconds();
      together();
      std::printf("{\"case\": \"%s\", \"cpu\": %.9f}\n", argv[a], (cpu_seconds() - cpu) / task.repeats);
      together();
      store.clear();
    }
    ps::Finalize(0, true);
    return 0;
  }
  if (ps::IsWorker()) {
    ps::KVWorker<float> worker(0, 0);
    together();
    for (int a = 5; a < argc; ++a) work(worker, task, argv[a]);
  }
  ps::Finalize(0, true);
  return 0;
}

// The peer: multiclass logistic regression as `shoal linear train --l2 0` does it, on ps-lite's sparse keys under bulk synchrony: the same minibatches, the same steps.
// Started by bench/linear.py as scheduler, server or worker (DMLC_* variables say which).
//   pslite_linear DATA EPOCHS BATCH
// Each clock a worker pulls the columns that its rows touch, pushes what it changes of them, and waits for all others. Keys are spread over the range of the
// library, so that every server has as many. The first worker prints a JSON line an epoch. Compiled with ps-lite and this tree's headers, and linked to ps-lite and to
// the rooms learn, data and core.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/peers/linear_clock.h"
#include "ps/ps.h"

namespace {

class Store {
 public:
  void operator()(const ps::KVMeta& meta, const ps::KVPairs<float>& data, ps::KVServer<float>* server) {
    const auto width = static_cast<std::size_t>(meta.cmd);
    ps::KVPairs<float> answer;
    if (meta.pull) {
      answer.keys = data.keys;
      answer.vals.resize(data.keys.size() * width);
    }
    for (std::size_t i = 0; i < data.keys.size(); ++i) {
      std::vector<float>& row = rows_[data.keys[i]];
      if (row.empty()) row.resize(width);
      if (meta.push) std::transform(row.begin(), row.end(), data.vals.data() + i * width, row.begin(), std::plus<>());
      if (meta.pull) std::copy(row.begin(), row.end(), answer.vals.data() + i * width);
    }
    server->Response(meta, answer);
  }

 private:
  std::unordered_map<ps::Key, std::vector<float>> rows_;
};

void learn_rows(ps::KVWorker<float>& worker, const std::string& file, unsigned epochs, std::size_t batch) {
  shoal::bench::LinearClocks clocks(file, batch, static_cast<std::uint32_t>(ps::MyRank()), static_cast<std::uint32_t>(ps::NumWorkers()));
  const std::size_t width = clocks.width();
  const ps::Key stride = ps::kMaxKey / clocks.rows();
  std::vector<float> values, changes;                // in the order of the clock's keys; what travels is in that of keys
  ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
  for (unsigned epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    clocks.begin_epoch(epoch);
    double loss = 0;
    for (std::size_t clock = 0; clock < clocks.clocks(); ++clock) {
      const std::span<const shoal::table::Key> touched = clocks.keys(clock);
      std::vector<std::size_t> order(touched.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::sort(order, {}, [&](std::size_t at) { return touched[at]; });
      ps::SArray<ps::Key> keys(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) keys[i] = touched[order[i]] * stride;
      ps::SArray<float> travelling(keys.size() * width, 0);
      worker.Wait(worker.ZPull(keys, &travelling, nullptr, static_cast<int>(width)));
      values.resize(travelling.size());
      changes.resize(travelling.size());
      for (std::size_t i = 0; i < order.size(); ++i) std::copy_n(&travelling[i * width], width, &values[order[i] * width]);
      loss += clocks.learn(epoch, clock, values, changes);
      for (std::size_t i = 0; i < order.size(); ++i) std::copy_n(&changes[order[i] * width], width, &travelling[i * width]);
      worker.Wait(worker.ZPush(keys, travelling, {}, static_cast<int>(width)));
      ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (ps::MyRank() == 0) std::printf("{\"epoch\": %u, \"seconds\": %.6f, \"own loss\": %.6f}\n", epoch + 1, seconds, loss / static_cast<double>(clocks.own()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "pslite_linear DATA EPOCHS BATCH\n"), 2;
  ps::Start(0);
  if (ps::IsServer()) {
    auto* server = new ps::KVServer<float>(0);
    server->set_request_handle(Store());
    ps::Finalize(0, true);
    delete server;
    return 0;
  }
  if (ps::IsWorker()) {
    ps::KVWorker<float> worker(0, 0);
    learn_rows(worker, argv[1], static_cast<unsigned>(std::stoul(argv[2])), std::stoul(argv[3]));
    ps::Finalize(0, true);
    return 0;
  }
  ps::Finalize(0, true);
  return 0;
}

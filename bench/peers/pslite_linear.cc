// The peer: multiclass logistic regression as `shoal linear train --l2 0` does it, on ps-lite's sparse keys under bulk synchrony: the same minibatches, the same steps.
// Started by bench/linear.py as scheduler, server or worker (DMLC_* variables say which).
//   pslite_linear DATA EPOCHS BATCH
// Each clock a worker pulls the columns that its rows touch, pushes what it changes of them, and waits for all others. Keys are spread over the range of the
// library, so that every server has as many. The first worker prints a JSON line an epoch. Compiled with ps-lite and this tree's headers, and linked to ps-lite and to
// the rooms learn, data and core.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "ps/ps.h"
#include "shoal/learn/linear.h"

namespace {

using namespace shoal;

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
  const learn::LabelledRows rows = learn::read_labelled_rows({.files = {file}, .test_files = {}}, static_cast<std::uint32_t>(ps::MyRank()), static_cast<std::uint32_t>(ps::NumWorkers()));
  const std::size_t classes = rows.classes.size(), width = learn::width_for(classes);
  const double smooth = learn::smoothness(rows.first, classes, batch), curvature = classes == 2 ? 0.25 : 0.5;
  const ps::Key stride = ps::kMaxKey / (rows.columns + 1);
  learn::TouchedColumns touched(rows.columns);
  ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
  for (unsigned epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    const auto dealt = learn::deal(rows, batch, 1, epoch + 1);
    double loss = 0;
    for (std::size_t clock = 0; clock < dealt.size(); ++clock) {
      const double part = static_cast<double>(clock) / static_cast<double>(dealt.size());
      const double scaled = learn::StepSize{2, true}.at(epoch + part) / smooth / static_cast<double>(std::min(batch, rows.count - clock * batch));
      touched.collect(rows.own, dealt[clock]);
      std::vector<std::size_t> order(touched.keys().size()), place(order.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::sort(order, {}, [&](std::size_t at) { return touched.keys()[at]; });
      ps::SArray<ps::Key> keys(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        keys[i] = touched.keys()[order[i]] * stride;
        place[order[i]] = i;
      }
      ps::SArray<float> values(keys.size() * width, 0), changes(keys.size() * width, 0);
      worker.Wait(worker.ZPull(keys, &values, nullptr, static_cast<int>(width)));
      std::vector<double> scores(width), likely(classes);
      const std::size_t ones = place[touched.ones()];
      for (const std::uint32_t number : dealt[clock]) {
        const data::SparseRow row = rows.own[number];
        for (std::size_t j = 0; j < width; ++j) scores[j] = values[ones * width + j];
        for (std::size_t k = 0; k < row.columns.size(); ++k) {
          const float* column = &values[place[touched.place(row.columns[k])] * width];
          for (std::size_t j = 0; j < width; ++j) scores[j] += double{row.values[k]} * column[j];
        }
        learn::softmax(scores, likely);
        const auto label = static_cast<std::size_t>(row.label);
        loss -= std::log(std::max(likely[label], 1e-300));
        likely[label] -= 1;
        for (std::size_t j = 0; j < width; ++j) scores[j] = -scaled * likely[classes - width + j];
        for (std::size_t k = 0; k < row.columns.size(); ++k) {
          float* column = &changes[place[touched.place(row.columns[k])] * width];
          for (std::size_t j = 0; j < width; ++j) column[j] += row.values[k] * static_cast<float>(scores[j]);
        }
        for (std::size_t j = 0; j < width; ++j) changes[ones * width + j] += static_cast<float>(scores[j] * smooth / curvature);
      }
      worker.Wait(worker.ZPush(keys, changes, {}, static_cast<int>(width)));
      ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (ps::MyRank() == 0) std::printf("{\"epoch\": %u, \"seconds\": %.6f, \"own loss\": %.6f}\n", epoch + 1, seconds, loss / static_cast<double>(rows.own.size()));
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

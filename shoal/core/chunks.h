// Work on many things by several threads, whose results come in the order of the things whatever the threads do, and of which no more are kept
// than a round of chunks has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <vector>

namespace shoal {

// worker(begin, end) for chunks of 0 to count, each worker on a thread of its own; take(result) of each on this one, in order.
template <class Worker, class Take>
void in_chunks(std::size_t count, std::vector<Worker>& workers, const Take& take) {
  constexpr std::size_t kChunk = 256, kChunksOfWorker = 16;
  using Result = decltype(workers.front()(std::size_t{}, std::size_t{}));
  const std::size_t round = kChunk * kChunksOfWorker * workers.size();
  for (std::size_t begin = 0; begin < count; begin += round) {
    const std::size_t end = std::min(count, begin + round);
    std::vector<Result> results((end - begin + kChunk - 1) / kChunk);
    std::atomic<std::size_t> next = 0;
    const auto work = [&](Worker& worker) {
      for (std::size_t i = next++; i < results.size(); i = next++) {
        results[i] = worker(begin + i * kChunk, std::min(end, begin + (i + 1) * kChunk));
      }
    };
    std::vector<std::future<void>> others;
    for (std::size_t w = 1; w < std::min(workers.size(), results.size()); ++w) {
      others.push_back(std::async(std::launch::async, [&, w] { work(workers[w]); }));
    }
    work(workers.front());
    for (auto& other : others) other.get();
    for (Result& result : results) take(std::move(result));
  }
}

}  // namespace shoal

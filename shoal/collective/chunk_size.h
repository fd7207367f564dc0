// How much of the data moves at once, found while the job runs: multiplicative increase, additive decrease, as Blink tunes its chunks (MLSys 2020,
// section 4: from 1 MB on GPUs, doubled while throughput grows, then less by a fixed step until it is steady).
//
// Small chunks pay for their number, big ones for the time to fill the pipeline, so throughput rises and falls with size. An iteration is a tick:
//
//     growing    rate > (1 + gain) best: twice the size      else: back to the best, step = 1/8 of it
//     trimming   less by a step each tick; better by `gain`: that is the best     worse by `gain`, or three steps that changed less: settled
//     settled    at the best size; the rate moves by more than `moved`: growing, from there
//
// A policy without clock or network; one thread.
#pragma once

#include <cstdint>

namespace shoal::collective {

class ChunkSize {
 public:
  struct Options {
    std::uint64_t first = 64 << 10, most = 64 << 20;  // bytes
    double gain = 0.02, moved = 0.15;  // of a rate: less is noise; the network changed
  };
  ChunkSize() : ChunkSize(Options{}) {}
  explicit ChunkSize(const Options& options) : options_(options), bytes_(options.first), best_(options.first) {}

  std::uint64_t bytes() const { return bytes_; }  // of the next iteration's chunks; a multiple of 64
  bool settled() const { return phase_ == Phase::settled; }
  void tick(double rate);  // what the last iteration moved, bytes/s > 0, with chunks of bytes()

 private:
  enum class Phase : std::uint8_t { growing, trimming, settled };
  void grow();
  void trim();
  void settle();

  Options options_;
  Phase phase_ = Phase::growing;
  std::uint64_t bytes_, best_, step_ = 0;
  double best_rate_ = 0;  // with best_; 0: none yet
  std::uint32_t quiet_ = 0;  // steps that changed nothing
};

}  // namespace shoal::collective

// What samplers have in common: each goes through a worker's tokens of one slice, draws the topic of each anew, and keeps all counts.
#pragma once

#include <cstdint>

#include "shoal/learn/topic/block.h"
#include "shoal/learn/topic/model.h"
#include "shoal/learn/topic/slice.h"
#include "shoal/learn/topic/totals.h"

namespace shoal::learn::topic {

// Random numbers as a function of where they are used: 64 bits for each (key, number), in any order (the finaliser of SplitMix64's family;
// Stafford's variant 13). A visit's key comes from seed, sweep, worker and slice; numbers are those of its tokens.
inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t number) { return mixed(key + number * 0x9E3779B97F4A7C15u); }
inline double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // [0, 1)

// A worker at work on the words of one slice.
struct Visit {
  Block& block;
  std::uint32_t number;  // of the slice
  Slice& slice;
  Totals& totals;
  const Prior& prior;
  double beta_sum;       // of all words
  std::uint64_t key;     // of its random numbers
};

// Before a worker sees the slices, each once, for a block of its documents.
struct Round {
  Block& block;
  Totals& totals;
  const Prior& prior;
  double beta_sum;       // of all words
  std::uint64_t key;     // of its random numbers, beside those of the visits
  std::uint32_t number_of_block = 0;
};

struct Drawn {  // tokens, by how their topics came about
  std::uint64_t tokens = 0, changed = 0;
  Drawn& operator+=(const Drawn& other) {
    tokens += other.tokens;
    changed += other.changed;
    return *this;
  }
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // A sampler with a pass over documents has it here; `tokens` are counted by sample().
  virtual Drawn begin_round(const Round&) { return {}; }
  virtual Drawn sample(const Visit& visit) = 0;
  virtual std::size_t memory() const = 0;  // bytes
};

}  // namespace shoal::learn::topic

// The exact sampler: each token's topic is drawn from its distribution given all others (collapsed Gibbs; Griffiths and Steyvers, PNAS 2004), in
// time that grows with the topics of its document and not with all topics. With the token itself taken out of all counts,
//
//   p(k)  ~  (C_dk + alpha_k) (C_wk + beta) / (C_k + V beta)
//          =  C_dk psi_k  +  C_wk a_k  +  beta a_k        psi_k = (C_wk + beta) / (C_k + V beta),   a_k = alpha_k / (C_k + V beta)
//
// The first term is summed over the document's table, 16 topics at once (long ones: by_topic.h); the second's sum is kept for the word while its
// tokens are drawn; the third's is the same for all words. What speaks for the token's own topic comes first, for most tokens stay, and then there
// is nothing to look for. Which of the terms of the others a uniform number falls into says where to look on: in the document's table, in the
// word's row (by groups of 64 topics where it is long), or in an alias table (Vose, IEEE TSE 17(9), 1991).
//
// psi is laid out for one word at a time, in a cache that all of its tokens share: tokens are ordered by word (block.h). A token of the same word,
// document and topic as the one before it, which stayed as it was, has the same distribution: only a new number is drawn. All counts are exact at
// every draw, but for what other workers have done to C_k (totals.h): one worker alone draws from the very distribution. Counts are integers; what
// is summed in floating point is summed in one order, the same for every instruction set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shoal/learn/topic/aligned.h"
#include "shoal/learn/topic/by_topic.h"
#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {

// A word as it is drawn from; by topic, and zeros behind the last. 48 bytes a topic: for some thousands of topics they stay in a core's own cache.
inline constexpr std::uint32_t kGroup = 64;

struct Laid {
  // What is looked at of a token's own topic, in a quarter of a cache line.
  struct alignas(16) Of {
    float inverse = 0;            // 1 / (C_k + V beta)
    float without = 0;            // the same for one of its tokens, which is taken out
    float alpha = 0;
    std::uint32_t count = 0;      // C_wk
    float a() const { return alpha * inverse; }
  };
  static float inverse_of(std::int64_t total, float beta_sum) { return 1 / (static_cast<float>(total) + beta_sum); }
  static float inverse_without(std::int64_t total, float beta_sum) {  // of no token nothing is taken out
    return inverse_of(std::max<std::int64_t>(total - 1, 0), beta_sum);
  }

  explicit Laid(std::uint32_t topics);
  std::uint32_t topics;
  std::vector<Of> of;             // by topic
  std::vector<std::uint32_t> place;  // of a topic in `list`, from 1 on; 0: it is not there
  Aligned<float> psi;
  std::vector<Topic> list;        // the topics whose counts are not 0, or were not
  Aligned<float> weights;         // C_wk a_k in the order of `list`, of long rows by topic; zeros behind
  Aligned<float> groups;          // sum of C_wk a_k over kGroup topics each; of long rows only
  std::size_t longest_list;       // topics of a row that is looked through one by one
  // Of the third term.
  double a_sum = 0;
  float growth = 1;               // of any a_k since the alias table was made, at most
  std::vector<float> begun;       // 1 / a_k when it was made
  std::vector<float> stays;       // the alias table: the chance to stay at this topic, and where to go otherwise
  std::vector<Topic> other;
  Aligned<float> cumulative;      // of the lines of a document or of `weights`; grows with the longest table
};

class Exact final : public Sampler {
 public:
  explicit Exact(std::uint32_t topics, LayOut lay_out = LayOut::where_cheaper) : laid_(topics), by_topic_(topics, lay_out) {}
  Drawn begin_round(const Round&) override {
    begun_ = false;  // the prior may be another
    return {};
  }
  Drawn sample(const Visit& visit) override;
  std::size_t memory() const override { return laid_.topics * std::size_t{48} + by_topic_.memory(); }

 private:
  void begin(const Visit& visit);
  bool begun_ = false;
  std::uint64_t ticks_ = 0;           // of the totals, when it was begun
  Laid laid_;
  ByTopic by_topic_;
  std::vector<TopicCount> row_;
  std::vector<Topic> below_, above_;  // while the alias table is made
};

}  // namespace shoal::learn::topic

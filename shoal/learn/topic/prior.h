// The priors that counts speak for: alpha of each topic, and one beta for all words, at the maximum of
//
//   p(z | alpha) p(w | z, beta) Gamma(alpha_1) Gamma(alpha_2) ... Gamma(beta)          with Gamma(x) in proportion to x^(s - 1) exp(-x / r)
//
// by the fixed point of Minka (Estimating a Dirichlet distribution, 2000, equation 55) in the form of Wallach (Structured topic models for language,
// 2008, section 2.3), which needs of the counts only how often each comes:
//
//   alpha_k <- (alpha_k sum over d of [psi(C_dk + alpha_k) - psi(alpha_k)] + s - 1) / (sum over d of [psi(L_d + a) - psi(a)] + 1 / r)
//   beta    <- (beta sum over w and k of [psi(C_wk + beta) - psi(beta)] + s - 1) / (V sum over k of [psi(C_k + V beta) - psi(V beta)] + 1 / r)
//
// or, with one alpha for all K topics,
//
//   alpha   <- (alpha sum over k and d of [psi(C_dk + alpha) - psi(alpha)] + s - 1) / (K sum over d of [psi(L_d + K alpha) - psi(K alpha)] + 1 / r)
//
// with a the sum of alpha, psi the digamma function, and MALLET's s = 1.001 and r = 1: it keeps topics without documents, and alike documents, from
// 0 and from infinity. One beta, because words' own would change nothing: topics tell words apart well enough (Wallach, Mimno and McCallum, NIPS 2009).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

// How often each count came. From 1,024 on, counts within 2 % of each other are one. A value.
class Histogram {
 public:
  void add(std::uint64_t count, std::uint64_t times = 1);
  void add_bin(std::uint32_t bin, std::uint64_t times);
  Histogram& operator+=(const Histogram& other);
  double rise(double a) const;  // sum over counts n of psi(n + a) - psi(a)
  std::span<const std::uint64_t> bins() const { return times_; }

 private:
  std::vector<std::uint64_t> times_;  // by bin
};

enum class AlphaForm : std::uint8_t { of_each_topic, of_all_alike };

// What a sum over documents and words must hold for the above. Parts of members and threads add up; a value.
class PriorEvidence {
 public:
  explicit PriorEvidence(std::uint32_t topics) : topics_(topics) {}
  void add_document(std::span<const TopicCount> counts);  // each topic once
  void add_row(std::span<const TopicCount> counts);       // of a word, or a part of it
  PriorEvidence& operator+=(const PriorEvidence& other);

  // What is not 0 as numbers, three an entry, to be sent; and taken in by another of as many topics.
  std::vector<std::uint64_t> numbers() const;
  void add_numbers(std::span<const std::uint64_t> numbers);

 private:
  friend Prior optimised(const Prior&, const PriorEvidence&, std::span<const std::uint64_t> totals, std::uint32_t words, AlphaForm, unsigned iterations);
  std::vector<Histogram> topics_;  // of C_dk by topic
  Histogram lengths_, pairs_;      // of L_d, of C_wk
};

// `iterations` steps of the fixed point from `prior`; totals: C_k of all members. The same on all members, to the bit.
Prior optimised(const Prior& prior, const PriorEvidence& evidence, std::span<const std::uint64_t> totals, std::uint32_t words,
                AlphaForm form = AlphaForm::of_each_topic, unsigned iterations = 10);

}  // namespace shoal::learn::topic

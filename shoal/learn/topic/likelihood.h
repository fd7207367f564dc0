// How likely words and topics together are under their priors, with every constant (Griffiths and Steyvers, PNAS 2004, equations 2 and 3):
//
//   ln p(w, z | alpha, beta) = sum over d of [lnG(a) - lnG(L_d + a) + sum over k of (lnG(C_dk + alpha_k) - lnG(alpha_k))]     documents' part
//                            + sum over w and k of (lnG(C_wk + beta) - lnG(beta))                                         words' part
//                            + sum over k of (lnG(V beta) - lnG(C_k + V beta))                                            topics' part
//
// with G the gamma function, a the sum of alpha, and L_d the tokens of document d. The parts add up over documents, words and topics, so that
// members and threads each take theirs. Figures of two systems compare only where vocabulary, tokens and priors are the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

struct LogLikelihood {
  double documents = 0, words = 0, topics = 0;
  std::uint64_t tokens = 0;

  double total() const { return documents + words + topics; }
  double per_token() const { return tokens == 0 ? 0 : total() / static_cast<double>(tokens); }
  LogLikelihood& operator+=(const LogLikelihood& other);
};

// lnG(count + a) - lnG(a): the logarithm of a (a + 1) ... (a + count - 1). Small counts are in a table. Threads: any, by const.
class Rise {
 public:
  explicit Rise(double a, std::uint32_t tabulated = 4096);
  double operator()(std::uint64_t count) const { return count < table_.size() ? table_[count] : beyond(count); }

 private:
  double beyond(std::uint64_t count) const;
  double a_, log_gamma_;
  std::vector<double> table_;
};

// Made once for a prior; threads: any, by const. A document or a row costs about a multiplication a token, or a look into a table a pair.
class Likelihood {
 public:
  Likelihood(const Prior& prior, std::uint32_t words);

  // Adds a document with these counts of topics, each topic once.
  void add_document(std::span<const TopicCount> counts, LogLikelihood& to) const;
  // Adds a word's row, or any part of it.
  void add_row(std::span<const TopicCount> counts, LogLikelihood& to) const;
  // Adds topics with these totals, all of them or some.
  void add_totals(std::span<const std::uint64_t> totals, LogLikelihood& to) const;

 private:
  std::vector<double> alpha_;
  Rise length_, row_, total_;  // of the sum of alpha, of beta, of V beta
};

// The parts that a model holds: the words' and the topics'. Documents' have to be added.
LogLikelihood log_likelihood(const Model& model);

// Topics of a document's tokens as counts, by ascending topic. Keeps memory from call to call; threads: one.
class TopicCounter {
 public:
  std::span<const TopicCount> operator()(std::span<const Topic> topics);  // valid until the next call

 private:
  std::vector<Topic> sorted_;
  std::vector<TopicCount> counts_;
};

}  // namespace shoal::learn::topic

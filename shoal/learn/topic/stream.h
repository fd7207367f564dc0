// Topics of documents that come in an endless stream: online variational Bayes (Hoffman, Blei and Bach, NIPS 2010), which sees each batch of documents
// once and keeps nothing of it but lambda, a number for each word and topic.
//
//   of a document, from gamma_dk = 1 until a step changes gamma_dk by less than `settled` in the mean:
//       phi_dwk  ~  exp(psi(gamma_dk) + psi(lambda_wk) - psi(sum over v of lambda_vk)), which sum to 1 over k
//       gamma_dk = alpha_k + sum over w of n_dw phi_dwk
//   of batch t = 0, 1, ... with S documents, as if all D there are were like them:
//       lambda_wk <- (1 - rho_t) lambda_wk + rho_t (beta + D / S sum over d of n_dw phi_dwk),       rho_t = (tau0 + t)^-kappa
//
// with psi the digamma function, and lambda_wk before the first batch drawn from a gamma distribution of mean 1 and variance 0.01. Words that a batch
// does not have only shrink towards beta, all alike: one factor stands for that, and a batch costs what its own words cost.
//
// On several members all have lambda and the batch; each infers its share of the documents, and the sums over documents are added up in the order of
// ranks (collective::direct_all_reduce). Within a member sums are made word by word in the order of documents. So lambda is a function of documents,
// options and the number of members, to the bit, whatever threads and timing are. Memory: 4 bytes a word and topic, and as much for the words and
// documents of a batch. Threads: one, which has others work for it; every call by all members alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "shoal/data/names.h"
#include "shoal/learn/topic/completion.h"
#include "shoal/learn/topic/model.h"
#include "shoal/net/transport.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

struct StreamOptions {
  Prior prior;                  // it stays as it is
  double tau0 = 1, kappa = 0.5; // gensim's; kappa in (0.5, 1] is what convergence asks for (Robbins and Monro)
  // D, or as many as have come where these are more. With few, the first batches would say too much: what they lack has no count beside beta.
  std::uint64_t documents = 1'000'000;
  unsigned iterations = 50;     // of a document, at most
  double settled = 0.001;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;    // of this member
  std::uint16_t channel = 20;   // of the transport's operations; one that nothing else has used
};

class Stream {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be, or that there is no memory for.
  Stream(net::Transport& transport, data::Names vocabulary, const StreamOptions& options);
  ~Stream();

  // Documents in the vocabulary's numbers, each of one word at least; of all members, the same on all.
  void learn(const text::Documents& batch);
  // How well one half of each document's tokens is foretold after the other half, before they are learnt from.
  Foretold foretell(const text::Documents& batch);

  // A file from which another one of the same words and topics can go on, on any number of members; of as many to the same bits. keep() throws
  // Error{io}; go_on_from(), before anything is learnt, Error{invalid_argument} for what is no such file.
  void keep(const std::filesystem::path& file) const;
  void go_on_from(const std::filesystem::path& file);

  unsigned batches() const { return batches_; }
  std::uint64_t documents() const { return documents_; }  // that it has learnt from
  std::uint64_t tokens() const { return tokens_; }
  double lambda(std::uint32_t word, Topic topic) const;
  // The expected counts, lambda_wk - beta, of as many documents as have come, in whole numbers that keep each word's sum: rounded down, and what is left
  // to the topics with the largest remainders.
  Model model() const;
  std::size_t memory() const;                             // bytes, without those of a batch

 private:
  struct Batch;
  class All;                                              // members
  Batch batch_of(const text::Documents& documents) const;
  void weigh(Batch& batch) const;
  void infer(Batch& batch, const std::function<void(std::size_t document, std::span<const float> gamma)>& visit) const;
  void sum_words(Batch& batch) const;
  void blend(const Batch& batch, double rho, double scale);

  const data::Names vocabulary_;
  const StreamOptions options_;
  const std::uint32_t topics_;
  std::vector<float> excess_;   // lambda_wk - beta is shrunk_ times it; word after word
  double shrunk_ = 1;
  std::vector<double> totals_;  // by topic: sum over w of lambda_wk - beta
  std::unique_ptr<All> all_;
  unsigned batches_ = 0;
  std::uint64_t documents_ = 0, tokens_ = 0;
};

}  // namespace shoal::learn::topic

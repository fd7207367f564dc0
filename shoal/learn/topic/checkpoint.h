// Where a training can be taken up again: the topics of all tokens after some sweep, a file a member in the folder checkpoint/ of the model's.
// Counts are made anew from them, which proves them. A file is there whole or not at all; older ones go when all members have written the newer
// one, so that members that are killed at any moment leave one sweep that all have.
//
//   checkpoint/sweep-50.rank-0-of-4.safetensors    topics of rank 0's tokens in the order of its documents, lengths of documents, alpha, beta; how
//                                                  documents were dealt, where shares were unequal (data::Share::turns)
//
// Members of another number, or on other hosts, go on from it where all files are in one folder: documents are dealt anew (data::Share).
// Threads: one; every call by all members alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "shoal/data/read.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

class Checkpoints {
 public:
  // folder: the model's. The transport outlives it.
  Checkpoints(net::Transport& transport, std::filesystem::path folder);
  ~Checkpoints();

  // The newest that all members can go on from; nothing where there is none. dealt: this member's documents. Throws Error{invalid_argument} for one of
  // other documents.
  std::optional<Kept> newest(const text::Corpus& corpus, std::uint32_t topics, const data::Share& dealt);
  void write(const Kept& kept, const text::Documents& documents, const data::Share& dealt);  // throws Error{io}
  static bool any(const std::filesystem::path& folder);  // whether the model's folder has some, of whatever run
  void complete();  // returns when all members have come here: what they were kept for is done
  static void remove(const std::filesystem::path& folder);  // of all members, behind that; folder: the model's

 private:
  std::filesystem::path folder_;
  std::uint32_t rank_, size_;
  table::Tables tables_;
  table::Worker worker_;
  SharedSums by_rank_;
};

}  // namespace shoal::learn::topic

// What a member's part of a training takes of memory, foreseen from the sizes of everything in it, and into how many blocks its documents go so that it
// keeps to a limit (blocks.h). What is not known before is taken for as large as it can become: rows of words are longest at a random start.
// Values; threads: any.
#pragma once

#include <cstdint>

#include "shoal/learn/topic/parallel.h"
#include "shoal/learn/topic/samplers.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

struct MemberPart {                // of a job: a member
  std::uint32_t topics = 0, members = 1, threads = 1;
  unsigned staleness = 1;
  Sampling sampling = {};
  bool first = true;               // rank 0 has the whole model now and then
  Parallel parallel = Parallel::rotation;
  std::uint32_t workers = 0;       // threads of all members; 0: each has as many
  // Which part of the rows it holds when they go round.
  double share() const { return workers == 0 ? 1.0 / members : static_cast<double>(threads) / workers; }
};

struct Footprint {                 // bytes
  std::uint64_t program = 0;       // without data
  std::uint64_t corpus = 0;        // names, vocabulary; words where they are in memory
  std::uint64_t rows = 0;          // of words: slices, one of them on its way, and the model as a whole
  std::uint64_t topics = 0;        // numbers for each topic: totals, what tokens are drawn with, sums over members
  std::uint64_t documents = 0;     // blocks
  std::uint64_t total() const { return program + corpus + rows + topics + documents; }
};
Footprint footprint(const text::Corpus& corpus, const MemberPart& part, std::uint32_t blocks);

// The least number of blocks a worker with which the footprint is within `limit`: 1, or more than 2, and at most kMostBlocks, with which it may still
// be beyond.
inline constexpr std::uint32_t kMostBlocks = 1024;
std::uint32_t blocks_within(std::uint64_t limit, const text::Corpus& corpus, const MemberPart& part);

// How many different topics so many tokens have when each has any: f of K have K (1 - (1 - 1 / K)^f).
double different_topics(double tokens, std::uint32_t topics);

// What this process has in memory now, without what it shares with files; for people.
std::uint64_t resident();

}  // namespace shoal::learn::topic

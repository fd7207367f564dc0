// Training a topic model as a job does it: sweep after sweep, with a look at it now and then, the prior fitted to the counts, and places to go on
// from. By all members alike. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/learn/gather.h"
#include "shoal/learn/topic/checkpoint.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/model.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

inline constexpr std::uint16_t kGatherChannel = 25;  // of the transport's: for a Gather beside an Lda and its checkpoints

struct TrainingOptions {
  unsigned sweeps = 200;        // in all, with those of a checkpoint
  bool optimise = true;         // the prior, every 10th sweep from the 100th on: fitted before, it keeps topics what they are by then
  unsigned look_every = 10;     // sweeps; 0: never
  unsigned keep_every = 50;     // sweeps from one checkpoint to the next; 0: none
};

// What a look at it has shown; figures are those of all members, but times and memory, which are this one's.
struct Look {
  unsigned sweep = 0;
  double seconds = 0;           // of all sweeps since training went on
  double waited = 0;            // share of its threads' time, since the last look
  double sent = 0;              // bytes of rows that it sent to other members, a sweep since the last look
  double rate = 0;              // tokens/s since the last look
  double changed = 0;           // share of tokens whose topic the last sweep changed
  double log_likelihood = 0;    // per token
  double perplexity = 0;        // of what is held out; 0 where nothing is
  double mean_perplexity = 0;   // the same by the mean over the states that were looked at since half of all sweeps; 0 where there are not two
  double memory = 0;            // bytes that this process has, without what it shares with files
  double model_memory = 0;      // of these, of counts, of documents in memory and of what topics are drawn with
  double rows_memory = 0;       // of these, of the words' rows that this member holds
  std::vector<std::vector<std::uint32_t>> words;  // rank 0: of some topics, the most frequent ones
};

struct Watching {
  std::function<void(unsigned sweep, double part)> progressed;
  std::function<void(const Look&)> looked;
};

// Documents that are not learnt from, on rank 0: half of each is shown, the other half foretold (completion.h). In the corpus's numbers, kUnknown
// for other words.
struct HeldOut {
  text::Documents shown, hidden;
  std::vector<std::uint32_t> numbers = {};  // among all members' documents, ascending, where they were taken out of these
};
// Takes a share of the documents out, about kMostHeldOut at most: the same ones for the same seed, whatever the number of members. Documents keep
// their places: of those that are out nothing is left there. dealt: what this member has of all. By all members alike.
inline constexpr std::uint64_t kMostHeldOut = 500;  // enough for a figure that scatters by less than 1 %
HeldOut hold_out(Gather& gather, text::Corpus& corpus, const data::Share& dealt, double share, std::uint64_t seed);

// held_out: rank 0's, or nothing. checkpoints: where to keep them, or nothing.
void train(Lda& lda, const HeldOut* held_out, Checkpoints* checkpoints, const TrainingOptions& options, const Watching& watching);

}  // namespace shoal::learn::topic

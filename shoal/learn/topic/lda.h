// Latent Dirichlet allocation on all threads and members of a job, by Gibbs sampling with rotation (model.h, exact.h; Zheng et al., arXiv 1411.2305):
//
//   each thread has its documents and keeps their counts; slices of the vocabulary with their words' counts go round all threads (schedule/ring.h).
//   So C_dk and C_wk are exact at every draw, on any number of threads; the totals C_k of other threads are as old as totals.h says.
//
// A thread whose documents are in several blocks (blocks.h) has the slices come round once for each of them. Where members tell each other what changed
// instead (parallel.h), each has copies of all slices, which go round its own threads in the same turns (told_slices.h).
//
// A model is a function of the corpus, the options and the numbers of members, threads of each and blocks, to the bit, whatever the timing.
// Threads: one, which has others work for it. Every call by all members alike.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/data/spilled_numbers.h"
#include "shoal/learn/gather.h"
#include "shoal/learn/shared_counts.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/learn/topic/blocks.h"
#include "shoal/learn/topic/dealing.h"
#include "shoal/learn/topic/likelihood.h"
#include "shoal/learn/topic/model.h"
#include "shoal/learn/topic/parallel.h"
#include "shoal/learn/topic/prior.h"
#include "shoal/learn/topic/samplers.h"
#include "shoal/learn/topic/slice.h"
#include "shoal/learn/topic/slicing.h"
#include "shoal/learn/topic/told_slices.h"
#include "shoal/schedule/ring.h"
#include "shoal/table/tables.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

// The topics that tokens begin with: each any, or drawn after those that were drawn before it (online_start.h).
enum class Start : std::uint8_t { random, online };
Start start_of(std::string_view name);  // throws Error{invalid_argument} that names both

struct LdaOptions {
  Prior prior;                // to begin with; as many topics as it has alphas
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;  // of this member
  unsigned staleness = 1;     // of totals, in steps of the rotation; and of rows that others tell of
  // Words whose tokens begin with these topics, each with one of its own; other tokens begin as `start` says.
  std::vector<std::pair<std::uint32_t, Topic>> seeds = {};
  Start start = Start::random;
  AlphaForm alpha_form = AlphaForm::of_each_topic;  // as optimise_prior() finds it
  Sampling sampling = {};
  Parallel parallel = Parallel::rotation;
  // Bytes that this member may take, with all that it has; 0: what it needs. Documents that would be beyond it lie in blocks in a file of blocks_in.
  std::uint64_t memory = 0;
  std::filesystem::path blocks_in = ".";
  Dealing dealing = {};  // of all members, by which documents were dealt, too; none: all have as many threads and documents, and this memory
  std::uint16_t channel = 20;  // the first of kLdaChannels of the transport's operations that nothing else has used
};
inline constexpr std::uint16_t kLdaChannels = 4;

struct SweepReport {
  std::uint64_t tokens = 0, changed = 0;  // of this member: drawn, and those whose topic is another now
  double seconds = 0;
  double waited = 0;                      // seconds of all threads: for slices and totals
  std::uint64_t sent = 0;                 // bytes of rows, to other members
};

// A state between two sweeps; of topics one member's.
struct Kept {
  unsigned sweeps = 0;
  Prior prior;
  std::vector<Topic> topics;                      // of this member's tokens, as the corpus has them
  std::shared_ptr<data::SpilledNumbers> on_disk = {};  // these in a file, where documents are in several blocks; then `topics` is empty
  void leave_to_disk(const std::filesystem::path& folder);  // in a file without a name; throws Error{io}
  std::span<const Topic> of_tokens() const { return on_disk ? on_disk->numbers<Topic>() : std::span<const Topic>(topics); }
};

class Lda {
 public:
  // The transport and the corpus outlive it. Throws Error{invalid_argument} for options that cannot be, such as too little memory for some member.
  // kept: what to go on from; nothing: topics begin as the options say. before: counts of documents that are not here, which stay under those of the
  // corpus (update.h); the same on all members, of the corpus's words, and outlives it, too.
  Lda(net::Transport& transport, const text::Corpus& corpus, const LdaOptions& options, const Kept* kept = nullptr, const Model* before = nullptr);
  ~Lda();

  // Draws every token's topic once. `progressed` hears, on some thread, which part is done.
  SweepReport sweep(const std::function<void(double part)>& progressed = {});
  unsigned sweeps() const { return sweeps_; }
  const LdaOptions& options() const { return options_; }
  const text::Corpus& corpus() const { return corpus_; }
  std::uint32_t topics() const { return topics_; }
  net::Rank rank() const { return transport_.rank(); }
  net::Rank members() const { return transport_.size(); }
  data::Share share() const { return options_.dealing.share(rank(), members()); }  // of the documents

  LogLikelihood log_likelihood();         // of all members; given what was before
  // The prior that the counts speak for (prior.h) is used from now on.
  void optimise_prior();
  const Prior& prior() const { return prior_; }
  std::size_t memory();                   // bytes: of the slices that this member has now, of its documents and of what it draws with
  std::size_t rows_memory();              // of these, of the slices
  std::uint32_t blocks() const { return blocks_; }  // of each thread's documents

  // Rank 0: the model; elsewhere one without words.
  Model model();
  // Rank 0: the same with no rows but those of the words that rank 0 names, so that no more of it has to be in one place.
  Model rows_of(std::span<const std::uint32_t> words);
  // Rank 0: of these topics, which all members name, the most frequent words (top_words.h); elsewhere nothing.
  std::vector<std::vector<std::uint32_t>> words_of(std::span<const Topic> topics, std::size_t most);
  std::vector<Topic> largest_topics(std::size_t most);  // by tokens of all members (page.h), on all of them
  // How many tokens of each of this member's documents `begin` to `end` - 1 have each topic: visit(document, counts), documents and topics ascending.
  void each_document(const std::function<void(std::size_t document, std::span<const TopicCount> counts)>& visit, std::size_t begin = 0,
                     std::size_t end = SIZE_MAX) const;
  // Where another one can go on to the same bits: everything that is not in it is made anew here, too.
  Kept keep();

 private:
  struct Worker;
  std::uint16_t channel(std::uint16_t number) const { return static_cast<std::uint16_t>(options_.channel + number); }
  enum class Pass { begin, count, settle, draw };
  void run(Pass pass, const std::function<void(double part)>& progressed);
  void work(Worker& worker, Pass pass, const std::function<void(double part)>& progressed);
  void round(Worker& worker, Pass pass, std::uint32_t number_of_block, std::uint64_t key, const std::function<void(double part)>& progressed);
  bool tells() const { return options_.parallel == Parallel::data && transport_.size() > 1; }
  std::vector<net::Rank> members_of_workers() const;
  std::vector<schedule::Place> places() const;  // where slices of this member lie between two sweeps
  void each_slice(const std::function<void(std::uint32_t number, Slice& slice)>& visit);
  // Those that this member speaks for, of all rows of all members: each is visited on one.
  void each_own_slice(const std::function<void(std::uint32_t number, const Slice& slice)>& visit);
  std::vector<std::uint64_t> totals();    // C_k of all members
  Model gathered(Bytes own, std::vector<std::uint64_t> totals);  // slices of all members
  void open_totals(Worker& worker, std::vector<std::int64_t> own);
  std::uint32_t agreed_blocks(const Kept* kept);
  Kept topics_now() const;
  Block begun(std::size_t begin, std::size_t end, std::uint64_t key, const Kept* kept) const;
  void sow(Block& block, std::uint64_t key) const;
  void lay_anew(Pass pass);

  net::Transport& transport_;
  const text::Corpus& corpus_;
  const LdaOptions options_;
  const Model* const before_;
  const std::uint32_t topics_;
  const std::vector<std::uint32_t> threads_;  // by rank
  const std::uint32_t first_worker_;          // of this member, among all
  const schedule::Rotation rotation_;
  const Slicing slicing_;
  std::uint32_t blocks_ = 1;
  Prior prior_;
  table::Tables tables_, own_tables_;     // of all threads; of members
  table::Worker member_;
  SharedCounts topic_sums_;               // a number for each topic, and one more
  SharedSums part_sums_;
  Gather gather_;
  std::unique_ptr<schedule::Ring<Slice>> ring_;
  std::optional<ToldSlices> told_;        // where members tell each other what changed
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t steps_ = 0;
  unsigned sweeps_ = 0;
};

}  // namespace shoal::learn::topic

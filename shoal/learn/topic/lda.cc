#include "shoal/learn/topic/lda.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "shoal/core/error.h"
#include "shoal/learn/topic/lda_worker.h"
#include "shoal/learn/topic/online_start.h"
#include "shoal/learn/topic/prior.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint16_t kTotals = 0, kSums = 1, kSlices = 2, kModel = 3;  // behind the options' channel
constexpr Nanoseconds kPatience = std::chrono::seconds(300);
constexpr std::uint32_t kAhead = 2;  // slices a thread: one is drawn while the other comes
constexpr std::uint32_t kManyTopics = 1u << 16;

// Steps from one exchange of totals to the next. Of so many topics that passing over them takes longer than the step's tokens, with few tokens each
// and little said by how many, totals go round more seldom; but once a round.
std::uint64_t steps_a_tick(const schedule::Rotation& rotation, std::uint64_t workers, std::uint64_t tokens, std::uint32_t topics, std::uint32_t blocks) {
  if (topics < kManyTopics) return 1;
  const std::uint64_t steps = workers * rotation.blocks() * blocks, tokens_a_step = std::max<std::uint64_t>(1, tokens / steps);
  return std::clamp<std::uint64_t>(topics / tokens_a_step, 1, rotation.blocks());
}

const LdaOptions& checked(const LdaOptions& options, const text::Corpus& corpus) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw Error(Code::invalid_argument, what, "", hint); };
  const std::size_t topics = options.prior.alpha.size();
  if (topics == 0) refuse("0 topics", "ask for at least one");
  if (topics > 1u << 24) refuse(std::to_string(topics) + " topics", "ask for at most 16,777,216");
  const auto positive = [](double value) { return value >= 1e-9 && value <= 1e9; };  // and more than nothing in single precision
  if (!std::ranges::all_of(options.prior.alpha, positive) || !positive(options.prior.beta))
    refuse("alpha and beta must be between 1e-9 and 1e9", "the usual ones are 5 in all, and 0.01");
  if (options.threads == 0) refuse("0 threads", "ask for at least one");
  if (corpus.all_tokens == 0) refuse("no document has a word", "look at the rules for the vocabulary");
  return options;
}

}  // namespace

Start start_of(std::string_view name) {
  if (name == "random") return Start::random;
  if (name == "online") return Start::online;
  throw Error(Code::invalid_argument, "there is no start \"" + std::string(name) + "\"", "", "there are random, online");
}

Lda::Lda(net::Transport& transport, const text::Corpus& corpus, const LdaOptions& options, const Kept* kept, const Model* before)
    : transport_(transport),
      corpus_(corpus),
      options_(checked(options, corpus)),
      before_(before),
      topics_(static_cast<std::uint32_t>(options.prior.alpha.size())),
      threads_(options.dealing.threads.empty() ? std::vector<std::uint32_t>(transport.size(), options.threads) : options.dealing.threads),
      first_worker_(std::accumulate(threads_.begin(), threads_.begin() + transport.rank(), 0u)),
      rotation_{std::accumulate(threads_.begin(), threads_.end(), 0u), kAhead},
      slicing_(corpus.frequencies, topics_, rotation_.blocks()),
      prior_(options.prior),
      tables_(transport, {.workers_of_each = threads_, .channel = channel(kTotals)}),
      own_tables_(transport, {.channel = channel(kSums)}),
      member_(own_tables_.worker()),
      topic_sums_(member_, "topic-counts", topics_ + std::size_t{1}),
      part_sums_(member_, "topic-likelihood", 3),
      gather_(transport, channel(kModel)) {
  if (kept != nullptr) {
    if (kept->of_tokens().size() != corpus.documents.tokens() || kept->prior.alpha.size() != topics_) {
      throw Error(Code::invalid_argument, "what was kept is of other documents or of another number of topics", "",
                  "train anew, or give the files and flags of that run");
    }
    prior_ = kept->prior;
    sweeps_ = kept->sweeps;
  }
  if (before != nullptr && (before->topics() != topics_ || before->words() != slicing_.words.size())) {
    throw Error(Code::invalid_argument, "what was before has other topics or words", "", "documents come into a model in its words");
  }
  ring_ = std::make_unique<schedule::Ring<Slice>>(transport, channel(kSlices), rotation_, members_of_workers(), kPatience,
                                                  tells() ? schedule::Holding::copies : schedule::Holding::turns);
  if (tells()) told_.emplace(rotation_, *ring_, transport.rank(), transport.size(), options.staleness, topics_);
  blocks_ = agreed_blocks(kept);
  const bool online = kept == nullptr && options.start == Start::online;
  const text::Documents& documents = corpus_.documents;
  const std::vector<std::size_t> begins = parts_of(documents, 0, documents.size(), options_.threads);
  for (std::uint32_t local = 0; local < options_.threads; ++local) {
    const std::uint32_t number = first_worker_ + local;
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>(number, local, blocks_, options_.blocks_in));
    const std::uint64_t key = random_bits(random_bits(options_.seed, 0), number);
    const std::vector<std::size_t> parts = parts_of(documents, begins[local], begins[local + 1], blocks_);
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      worker.blocks.append(begun(parts[block], parts[block + 1], block == 0 ? key : random_bits(key, ~block), kept), parts[block]);
      leave_to_disk(documents);
    }
  }
  lay_anew(online ? Pass::begin : Pass::count);
}

Lda::~Lda() {
  workers_.clear();
  try {
    tables_.leave();
    own_tables_.leave();
  } catch (const Error&) {  // the job has failed: who waits for it hears why
  }
}

std::vector<net::Rank> Lda::members_of_workers() const {
  std::vector<net::Rank> members;
  for (net::Rank rank = 0; rank < transport_.size(); ++rank) members.insert(members.end(), threads_[rank], rank);
  return members;
}

// Slices lie where they are needed next.
std::vector<schedule::Place> Lda::places() const {
  std::vector<schedule::Place> places;
  if (tells()) {
    const schedule::Team team = ring_->team(transport_.rank());
    for (std::uint32_t number = 0; number < slicing_.slices(); ++number) places.push_back(rotation_.first_within(team, number, steps_));
    return places;
  }
  for (const auto& worker : workers_) {
    for (std::uint64_t step = steps_; step < steps_ + rotation_.ahead; ++step) places.push_back({worker->number, step});
  }
  return places;
}

// Documents `begin` to `end` - 1 with the topics that their tokens begin with.
Block Lda::begun(std::size_t begin, std::size_t end, std::uint64_t key, const Kept* kept) const {
  const text::Documents& documents = corpus_.documents;
  Block block(documents, begin, end, slicing_, topics_);
  const std::span<const Topic> topics = kept != nullptr ? kept->of_tokens().subspan(documents.offsets[begin]) : std::span<const Topic>();
  for (std::uint32_t token = 0; token < block.tokens(); ++token) {
    block.topics[token] = kept != nullptr                   ? topics[block.positions[token]]
                          : options_.start == Start::online ? kNoTopic
                                                            : static_cast<Topic>((random_bits(key, token) >> 32) * topics_ >> 32);
  }
  if (kept == nullptr) sow(block, key);
  return block;
}

void Lda::sow(Block& block, std::uint64_t key) const {
  std::map<std::uint32_t, std::vector<Topic>> topics_of;  // by the word's place among all slices
  for (const auto& [word, topic] : options_.seeds) topics_of[slicing_.ordinal[word]].push_back(topic);
  for (std::uint32_t slice = 0; slice < slicing_.slices(); ++slice) {
    const auto runs = block.runs_of(slice);
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
      const auto seeded = topics_of.find(slicing_.begins[slice] + runs[i].place);
      if (seeded == topics_of.end()) continue;
      const std::vector<Topic>& topics = seeded->second;
      for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token)
        block.topics[token] = topics[random_bits(key, token) % topics.size()];
    }
  }
}

// All counts from the topics of tokens, or from none (Pass::begin). Rows begin empty, or with what was before, and each worker adds its own when they
// come by.
void Lda::lay_anew(Pass pass) {
  for (const auto& worker : workers_)
    worker->sampler = pass == Pass::begin ? std::make_unique<OnlineStart>(topics_) : make_sampler(options_.sampling, topics_, worker->blocks.enter(0));
  for (const schedule::Place& place : places()) {
    const std::uint32_t number = rotation_.block(place.worker, place.step);
    auto slice = std::make_unique<Slice>(slicing_.size(number));
    for (std::uint32_t word = 0; before_ != nullptr && word < slice->words(); ++word) slice->store(word, (*before_)[slicing_.word(number, word)]);
    ring_->put(place.worker, place.step, std::move(slice));
  }
  run(pass, {});
  if (told_) told_->settle(steps_);
  for (const auto& worker : workers_) {
    if (pass == Pass::begin) worker->sampler = make_sampler(options_.sampling, topics_, worker->blocks.enter(0));
  }
}

// own: the worker's counts as they are now.
void Lda::open_totals(Worker& worker, std::vector<std::int64_t> own) {
  for (Topic topic = 0; before_ != nullptr && worker.number == 0 && topic < topics_; ++topic)
    own[topic] += static_cast<std::int64_t>(before_->totals[topic]);
  worker.totals.emplace(tables_.worker(worker.local), own, options_.staleness);
}

void Lda::run(Pass pass, const std::function<void(double part)>& progressed) {
  std::mutex mutex;
  std::exception_ptr first;  // what others end with follows from it
  {
    std::vector<std::jthread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back([&] {
        // Others would wait for the slices that it has.
        const auto fail = [&](const Error& why) {
          {
            const std::lock_guard lock(mutex);
            if (!first) first = std::current_exception();
          }
          transport_.post([&transport = transport_, why] { transport.fail(why); });
        };
        try {
          work(*worker, pass, progressed);
        } catch (const Error& error) {
          fail(error);
        } catch (const std::exception& error) {
          fail(Error(Code::cancelled, error.what()));
        }
      });
    }
  }
  steps_ += std::uint64_t{blocks_} * rotation_.blocks();
  if (first) std::rethrow_exception(first);
}

void Lda::work(Worker& worker, Pass pass, const std::function<void(double part)>& progressed) {
  const std::uint64_t key = random_bits(random_bits(options_.seed, pass == Pass::begin ? 0 : sweeps_ + std::uint64_t{1}), worker.number);
  if (pass == Pass::begin) open_totals(worker, std::vector<std::int64_t>(topics_));
  std::vector<std::int64_t> own(pass == Pass::count ? topics_ : 0);
  for (std::uint32_t number = 0; number < blocks_; ++number) {
    round(worker, pass, number, number == 0 ? key : random_bits(key, rotation_.blocks() + number), progressed);
    if (pass != Pass::count) continue;
    for (const Topic topic : worker.blocks.enter(number).topics) ++own[topic];
  }
  if (pass == Pass::settle) worker.totals->settle();
  if (pass == Pass::count) open_totals(worker, std::move(own));
}

// Every slice comes by once, for one block of the worker's.
void Lda::round(Worker& worker, Pass pass, std::uint32_t number_of_block, std::uint64_t key, const std::function<void(double part)>& progressed) {
  const double beta_sum = prior_.beta * static_cast<double>(slicing_.words.size());
  const bool draws = pass == Pass::begin || pass == Pass::draw;
  Block& block = worker.blocks.enter(number_of_block);
  worker.blocks.changed();
  if (pass == Pass::draw) {
    worker.drawn += worker.sampler->begin_round({block, *worker.totals, prior_, beta_sum, random_bits(key, rotation_.blocks()), number_of_block});
  } else if (pass != Pass::begin) {
    block.count();
  }
  const std::uint64_t begin = steps_ + std::uint64_t{number_of_block} * rotation_.blocks(), all = std::uint64_t{blocks_} * rotation_.blocks();
  const std::uint64_t every = steps_a_tick(rotation_, std::accumulate(threads_.begin(), threads_.end(), 0u), corpus_.all_tokens, topics_, blocks_);
  for (std::uint64_t step = begin; step < begin + rotation_.blocks(); ++step) {
    const std::uint32_t number = rotation_.block(worker.number, step);
    std::unique_ptr<Slice> slice = ring_->take(worker.number, step, worker.waited);
    if (slice->words() != slicing_.size(number) || slice->topics() > topics_)
      throw Error(Code::mismatch, "a slice of another vocabulary came", "", "read the same files on all members");
    if (told_) told_->enter({worker.number, step}, *slice, worker.waited);
    if (draws) {
      worker.drawn += worker.sampler->sample({block, number, *slice, *worker.totals, prior_, beta_sum, random_bits(key, number)});
    } else {
      block.add_to(*slice, number);
    }
    if (told_) told_->leave({worker.number, step}, *slice);
    if (slice->is_wasteful()) *slice = slice->compacted();
    ring_->pass(worker.number, step, std::move(slice));
    const std::uint64_t done = step + 1 - begin;
    if (draws && (done % every == 0 || done == rotation_.blocks())) worker.totals->tick();
    if (progressed && worker.local == 0) progressed(static_cast<double>(step + 1 - steps_) / static_cast<double>(all));
  }
}

SweepReport Lda::sweep(const std::function<void(double part)>& progressed) {
  const auto begun = std::chrono::steady_clock::now();
  for (const auto& worker : workers_) {
    worker->drawn = {};
    worker->waited = {};
  }
  const std::uint64_t sent = ring_->sent();
  run(Pass::draw, progressed);
  ++sweeps_;
  SweepReport report;
  report.sent = ring_->sent() - sent;
  for (const auto& worker : workers_) {
    report.tokens += worker->drawn.tokens;
    report.changed += worker->drawn.changed;
    report.waited += std::chrono::duration<double>(worker->waited).count() + worker->totals->take_waited();
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

void Lda::each_slice(const std::function<void(std::uint32_t number, Slice& slice)>& visit) {
  Nanoseconds waited{};
  for (const auto& [worker, step] : places()) {
    std::unique_ptr<Slice> slice = ring_->take(worker, step, waited);
    visit(rotation_.block(worker, step), *slice);
    ring_->put(worker, step, std::move(slice));
  }
}

void Lda::each_own_slice(const std::function<void(std::uint32_t number, const Slice& slice)>& visit) {
  each_slice([&](std::uint32_t number, const Slice& slice) {
    if (!told_) return visit(number, slice);
    if (number % transport_.size() == transport_.rank()) visit(number, told_->as_of(number, slice, steps_));  // all members have it
  });
}

Kept Lda::keep() {
  // Rows and tables are in the order that sampling left: in what goes on from here they are in that of their tokens.
  Nanoseconds waited{};
  for (const auto& [worker, step] : places()) ring_->take(worker, step, waited);
  if (told_) told_->forget(steps_);
  lay_anew(Pass::settle);
  return topics_now();
}

}  // namespace shoal::learn::topic

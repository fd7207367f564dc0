#include "shoal/learn/topic/lda.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "shoal/core/error.h"
#include "shoal/learn/topic/online_start.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint16_t kTotals = 0, kSums = 1, kSlices = 2, kModel = 3;  // behind the options' channel
constexpr Nanoseconds kPatience = std::chrono::seconds(300);
constexpr std::uint32_t kAhead = 2;  // slices a thread: one is drawn while the other comes

const LdaOptions& checked(const LdaOptions& options, const text::Corpus& corpus) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw Error(Code::invalid_argument, what, "", hint); };
  const std::size_t topics = options.prior.alpha.size();
  if (topics == 0) refuse("0 topics", "ask for at least one");
  if (topics > 1u << 24) refuse(std::to_string(topics) + " topics", "ask for at most 16,777,216");
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (!std::ranges::all_of(options.prior.alpha, positive) || !positive(options.prior.beta))
    refuse("alpha and beta must be above 0", "the usual ones are 5 in all, and 0.01");
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

// A thread's part: documents `begin` to `end` - 1 of this member's.
struct Lda::Worker {
  Worker(std::uint32_t of_all, std::uint32_t of_member, std::size_t from, Block of_documents)
      : number(of_all), local(of_member), begin(from), block(std::move(of_documents)) {}
  const std::uint32_t number, local;
  const std::size_t begin;
  Block block;
  std::unique_ptr<Sampler> sampler;
  std::optional<Totals> totals;
  Drawn drawn;
  Nanoseconds waited{};
  std::exception_ptr failure;
};

Lda::Lda(net::Transport& transport, const text::Corpus& corpus, const LdaOptions& options, const Kept* kept, const Model* before)
    : transport_(transport),
      corpus_(corpus),
      options_(checked(options, corpus)),
      before_(before),
      topics_(static_cast<std::uint32_t>(options.prior.alpha.size())),
      rotation_{transport.size() * options.threads, kAhead},
      slicing_(corpus.frequencies, topics_, rotation_.blocks()),
      prior_(options.prior),
      tables_(transport, {.workers_a_member = options.threads, .channel = channel(kTotals)}),
      own_tables_(transport, {.channel = channel(kSums)}),
      member_(own_tables_.worker()),
      total_sums_(member_, "topic-counts", topics_),
      part_sums_(member_, "topic-likelihood", 3),
      prior_sums_(member_, "topic-prior", topics_ + std::size_t{1}),
      gather_(transport, channel(kModel)) {
  if (kept != nullptr) {
    if (kept->topics.size() != corpus.documents.tokens() || kept->prior.alpha.size() != topics_) {
      throw Error(Code::invalid_argument, "what was kept is of other documents or of another number of topics", "",
                  "train anew, or give the files and flags of that run");
    }
    prior_ = kept->prior;
    sweeps_ = kept->sweeps;
  }
  if (before != nullptr && (before->topics() != topics_ || before->words() != slicing_.words.size())) {
    throw Error(Code::invalid_argument, "what was before has other topics or words", "", "documents come into a model in its words");
  }
  ring_ = std::make_unique<schedule::Ring<Slice>>(transport, channel(kSlices), rotation_, options_.threads, kPatience);
  const bool online = kept == nullptr && options.start == Start::online;
  // Documents in as many parts as there are threads, of about as many tokens each.
  const text::Documents& documents = corpus_.documents;
  std::size_t begin = 0;
  for (std::uint32_t local = 0; local < options_.threads; ++local) {
    const std::uint64_t until = documents.tokens() * (local + 1) / options_.threads;
    const auto past = std::upper_bound(documents.offsets.begin(), documents.offsets.end() - 1, until);
    const std::size_t end = local + 1 == options_.threads ? documents.size() : static_cast<std::size_t>(past - documents.offsets.begin()) - 1;
    const std::uint32_t number = transport.rank() * options_.threads + local;
    workers_.push_back(std::make_unique<Worker>(number, local, begin, Block(documents, begin, std::max(begin, end), slicing_, topics_)));
    begin = std::max(begin, end);
    Block& block = workers_.back()->block;
    const std::uint64_t key = random_bits(random_bits(options_.seed, 0), number);
    for (std::uint32_t token = 0; token < block.tokens(); ++token) {
      block.topics[token] = kept != nullptr ? kept->topics[documents.offsets[workers_.back()->begin] + block.positions[token]]
                            : online        ? kNoTopic
                                            : static_cast<Topic>((random_bits(key, token) >> 32) * topics_ >> 32);
    }
    if (kept == nullptr) sow(*workers_.back(), key);
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

void Lda::sow(Worker& worker, std::uint64_t key) {
  std::map<std::uint32_t, std::vector<Topic>> topics_of;  // by the word's place among all slices
  for (const auto& [word, topic] : options_.seeds) topics_of[slicing_.ordinal[word]].push_back(topic);
  Block& block = worker.block;
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
  for (const auto& worker : workers_) {
    if (pass == Pass::begin) {
      worker->sampler = std::make_unique<OnlineStart>(topics_);
    } else {
      worker->block.count();
      worker->sampler = make_sampler(options_.sampling, topics_, worker->block);
    }
    for (std::uint32_t ahead = 0; ahead < rotation_.ahead; ++ahead) {
      const std::uint32_t number = rotation_.block(worker->number, steps_ + ahead);
      auto slice = std::make_unique<Slice>(slicing_.size(number));
      for (std::uint32_t place = 0; before_ != nullptr && place < slice->words(); ++place)
        slice->store(place, (*before_)[slicing_.word(number, place)]);
      ring_->put(worker->number, steps_ + ahead, std::move(slice));
    }
  }
  run(pass, {});
  for (const auto& worker : workers_) {
    if (pass == Pass::begin) worker->sampler = make_sampler(options_.sampling, topics_, worker->block);
  }
}

// counted: with the worker's tokens; otherwise these are to come.
void Lda::open_totals(Worker& worker, bool counted) {
  std::vector<std::int64_t> own(topics_);
  if (counted) {
    for (const Topic topic : worker.block.topics) ++own[topic];
  }
  for (Topic topic = 0; before_ != nullptr && worker.number == 0 && topic < topics_; ++topic)
    own[topic] += static_cast<std::int64_t>(before_->totals[topic]);
  worker.totals.emplace(tables_.worker(worker.local), own, options_.staleness);
}

void Lda::run(Pass pass, const std::function<void(double part)>& progressed) {
  {
    std::vector<std::jthread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back([this, &worker, pass, &progressed] {
        try {
          work(*worker, pass, progressed);
        } catch (const std::exception& error) {
          worker->failure = std::current_exception();
          // Others would wait for the slices that it has.
          transport_.post([&transport = transport_, why = Error(Code::cancelled, error.what())] { transport.fail(why); });
        }
      });
    }
  }
  steps_ += rotation_.blocks();
  for (const auto& worker : workers_) {
    if (worker->failure) std::rethrow_exception(worker->failure);
  }
}

// A round: every slice comes by once.
void Lda::work(Worker& worker, Pass pass, const std::function<void(double part)>& progressed) {
  const std::uint64_t key = random_bits(random_bits(options_.seed, pass == Pass::begin ? 0 : sweeps_ + std::uint64_t{1}), worker.number);
  const double beta_sum = prior_.beta * static_cast<double>(slicing_.words.size());
  const bool draws = pass == Pass::begin || pass == Pass::draw;
  if (pass == Pass::begin) open_totals(worker, false);
  if (pass == Pass::draw)
    worker.drawn += worker.sampler->begin_round({worker.block, *worker.totals, prior_, beta_sum, random_bits(key, rotation_.blocks())});
  for (std::uint64_t step = steps_; step < steps_ + rotation_.blocks(); ++step) {
    const std::uint32_t number = rotation_.block(worker.number, step);
    std::unique_ptr<Slice> slice = ring_->take(worker.number, step, worker.waited);
    if (slice->words() != slicing_.size(number))
      throw Error(Code::mismatch, "a slice of another vocabulary came", "", "read the same files on all members");
    if (draws) {
      worker.drawn += worker.sampler->sample({worker.block, number, *slice, *worker.totals, prior_, beta_sum, random_bits(key, number)});
    } else {
      worker.block.add_to(*slice, number);
    }
    ring_->pass(worker.number, step, std::move(slice));
    if (draws) worker.totals->tick();
    if (progressed && worker.local == 0) progressed(static_cast<double>(step + 1 - steps_) / rotation_.blocks());
  }
  if (pass == Pass::settle) worker.totals->settle();
  if (pass == Pass::count) open_totals(worker, true);
}

SweepReport Lda::sweep(const std::function<void(double part)>& progressed) {
  const auto begun = std::chrono::steady_clock::now();
  for (const auto& worker : workers_) {
    worker->drawn = {};
    worker->waited = {};
  }
  run(Pass::draw, progressed);
  ++sweeps_;
  SweepReport report;
  for (const auto& worker : workers_) {
    report.tokens += worker->drawn.tokens;
    report.changed += worker->drawn.changed;
    report.waited += std::chrono::duration<double>(worker->waited).count() + worker->totals->take_waited();
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

// Between two sweeps the slices lie where they are needed next.
void Lda::each_slice(const std::function<void(std::uint32_t number, const Slice& slice)>& visit) {
  Nanoseconds waited{};
  for (const auto& worker : workers_) {
    for (std::uint64_t step = steps_; step < steps_ + rotation_.ahead; ++step) {
      std::unique_ptr<Slice> slice = ring_->take(worker->number, step, waited);
      visit(rotation_.block(worker->number, step), *slice);
      ring_->put(worker->number, step, std::move(slice));
    }
  }
}

void Lda::each_document(const std::function<void(std::size_t document, std::span<const TopicCount> counts)>& visit) const {
  std::vector<TopicCount> counts;
  for (const auto& worker : workers_) {
    for (std::uint32_t d = 0; d < worker->block.documents(); ++d) {
      worker->block.counts_of(d, counts);
      std::ranges::sort(counts, {}, &TopicCount::topic);
      visit(worker->begin + d, counts);
    }
  }
}

std::vector<double> Lda::totals() {
  std::vector<double> own(topics_);
  each_slice([&](std::uint32_t, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) {
      for (const auto& [topic, count] : slice.row(place)) own[topic] += count;
    }
  });
  return total_sums_.sum(own);
}

LogLikelihood Lda::log_likelihood() {
  const Likelihood likelihood(prior_, static_cast<std::uint32_t>(slicing_.words.size()));
  LogLikelihood own;
  each_slice([&](std::uint32_t, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) likelihood.add_row(slice.row(place), own);
  });
  each_document([&](std::size_t, std::span<const TopicCount> counts) { likelihood.add_document(counts, own); });
  const std::vector<double> sums = part_sums_.sum({own.documents, own.words, static_cast<double>(corpus_.documents.tokens())});
  const std::vector<double> counted = totals();
  LogLikelihood all;
  likelihood.add_totals(std::vector<std::uint64_t>(counted.begin(), counted.end()), all);
  all.documents = sums[0];
  all.words = sums[1];
  if (before_ != nullptr) {
    LogLikelihood under;
    for (std::uint32_t word = 0; word < before_->words(); ++word) likelihood.add_row((*before_)[word], under);
    likelihood.add_totals(before_->totals, under);
    all.words -= under.words;
    all.topics -= under.topics;
  }
  all.tokens = static_cast<std::uint64_t>(sums[2]);
  return all;
}

void Lda::optimise_prior() {
  PriorEvidence evidence(topics_);
  each_slice([&](std::uint32_t, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) evidence.add_row(slice.row(place));
  });
  each_document([&](std::size_t, std::span<const TopicCount> counts) { evidence.add_document(counts); });
  const std::vector<double> counted = totals();
  const std::vector<std::uint64_t> numbers = evidence.numbers();
  Bytes own(numbers.size() * sizeof(std::uint64_t));
  std::memcpy(own.data(), numbers.data(), own.size());
  const std::vector<Bytes> all = gather_(own, "counts for the prior");
  // Rank 0 decides; what it found is everybody's.
  std::vector<double> decided(topics_ + std::size_t{1});
  if (transport_.rank() == 0) {
    for (net::Rank rank = 1; rank < transport_.size(); ++rank) {
      std::vector<std::uint64_t> theirs(all[rank].size() / sizeof(std::uint64_t));
      std::memcpy(theirs.data(), all[rank].data(), theirs.size() * sizeof(std::uint64_t));
      evidence.add_numbers(theirs);
    }
    const Prior better =
        optimised(prior_, evidence, std::vector<std::uint64_t>(counted.begin(), counted.end()), static_cast<std::uint32_t>(slicing_.words.size()),
                  options_.alpha_form);
    std::ranges::copy(better.alpha, decided.begin());
    decided.back() = better.beta;
  }
  const std::vector<double> shared = prior_sums_.sum(decided);
  prior_.alpha.assign(shared.begin(), shared.end() - 1);
  prior_.beta = shared.back();
}

std::size_t Lda::memory() {
  std::size_t bytes = 0;
  each_slice([&](std::uint32_t, const Slice& slice) { bytes += slice.memory(); });
  for (const auto& worker : workers_) bytes += worker->block.memory() + worker->sampler->memory() + worker->totals->memory();
  return bytes;
}

Model Lda::model() {
  std::vector<std::byte> own;
  each_slice([&](std::uint32_t number, const Slice& slice) {
    const Bytes bytes = slice.packed();
    const std::uint64_t head[2] = {number, bytes.size()};
    const auto* const begin = reinterpret_cast<const std::byte*>(head);
    own.insert(own.end(), begin, begin + sizeof(head));
    own.insert(own.end(), bytes.begin(), bytes.end());
  });
  Bytes packed(own.size());
  std::memcpy(packed.data(), own.data(), own.size());
  const std::vector<Bytes> all = gather_(packed, "parts of the model");
  Model model{.prior = prior_, .vocabulary = {}, .offsets = {0}, .counts = {}, .totals = std::vector<std::uint64_t>(topics_)};
  if (transport_.rank() != 0) return model;
  std::vector<std::unique_ptr<Slice>> slices(slicing_.slices());
  for (const Bytes& part : all) {
    for (std::span<const std::byte> rest(part.data(), part.size()); !rest.empty();) {
      std::uint64_t head[2];
      if (rest.size() < sizeof(head)) throw Error(Code::mismatch, "a part of the model is cut short");
      std::memcpy(head, rest.data(), sizeof(head));
      rest = rest.subspan(sizeof(head));
      if (head[0] >= slices.size() || head[1] > rest.size()) throw Error(Code::mismatch, "a part of the model is none");
      slices[head[0]] = Slice::unpacked(rest.first(head[1]));
      rest = rest.subspan(head[1]);
    }
  }
  model.vocabulary = corpus_.vocabulary;
  for (std::uint32_t word = 0; word < slicing_.words.size(); ++word) {
    const std::uint32_t ordinal = slicing_.ordinal[word];
    const auto slice =
        static_cast<std::size_t>(std::upper_bound(slicing_.begins.begin(), slicing_.begins.end(), ordinal) - slicing_.begins.begin()) - 1;
    const auto row = slices[slice]->row(ordinal - slicing_.begins[slice]);
    model.counts.insert(model.counts.end(), row.begin(), row.end());
    std::sort(model.counts.begin() + static_cast<std::ptrdiff_t>(model.offsets.back()), model.counts.end(),
              [](const TopicCount& a, const TopicCount& b) { return a.topic < b.topic; });
    model.offsets.push_back(model.counts.size());
    for (const auto& [topic, count] : row) model.totals[topic] += count;
  }
  return model;
}

Kept Lda::keep() {
  // Rows and tables are in the order that sampling left: in what goes on from here they are in that of their tokens.
  Nanoseconds waited{};
  for (const auto& worker : workers_) {
    for (std::uint64_t step = steps_; step < steps_ + rotation_.ahead; ++step) ring_->take(worker->number, step, waited);
  }
  lay_anew(Pass::settle);
  Kept kept{sweeps_, prior_, std::vector<Topic>(corpus_.documents.tokens())};
  for (const auto& worker : workers_) {
    const std::uint64_t first = corpus_.documents.offsets[worker->begin];
    for (std::uint32_t token = 0; token < worker->block.tokens(); ++token)
      kept.topics[first + worker->block.positions[token]] = worker->block.topics[token];
  }
  return kept;
}

}  // namespace shoal::learn::topic

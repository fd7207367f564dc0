#include "shoal/learn/topic/stream.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/run.h"
#include "shoal/core/chunks.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/tensor_file.h"
#include "shoal/learn/topic/digamma.h"
#include "shoal/learn/topic/posterior.h"
#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {
namespace {

constexpr double kLeastShrunk = 1e-6;  // below it, rows take it over: single precision has room for so much

const StreamOptions& checked(const StreamOptions& options, std::size_t words) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw Error(Code::invalid_argument, what, "", hint); };
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (words == 0) refuse("no words", "name the vocabulary");
  if (options.prior.alpha.empty()) refuse("0 topics", "ask for at least one");
  if (!std::ranges::all_of(options.prior.alpha, positive) || !positive(options.prior.beta)) refuse("alpha and beta must be above 0", "");
  if (!positive(options.tau0) || options.tau0 < 1) refuse("tau0 must be at least 1", "the larger, the less the first documents say");
  if (!(options.kappa > 0 && options.kappa <= 1)) refuse("kappa must be above 0 and at most 1", "0.5 forgets soonest, 1 never");
  if (options.threads == 0) refuse("0 threads", "ask for at least one");
  need_memory(4.0 * static_cast<double>(words) * static_cast<double>(options.prior.alpha.size()),
              show_count(words, "words") + " by " + show_count(options.prior.alpha.size(), "topics"));
  return options;
}

constexpr double kMostCount = 4294967294;  // of a word and topic, that a model can hold

// Of shape 100 and mean 1 (Marsaglia and Tsang, ACM TOMS 26, 2000).
double gamma_of_100(std::uint64_t key) {
  constexpr double d = 100 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (std::uint64_t i = 0;; i += 3) {
    const double radius = std::sqrt(-2 * std::log(1 - unit(random_bits(key, i))));
    const double x = radius * std::cos(2 * M_PI * unit(random_bits(key, i + 1))), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - unit(random_bits(key, i + 2))) < x * x / 2 + d - d * v + d * std::log(v)) return d * v / 100;
  }
}

// work(begin, end) for chunks of 0 to count, on so many threads.
template <class Work>
void on_threads(std::size_t count, std::uint32_t threads, const Work& work) {
  struct Worker {
    const Work& work;
    std::size_t operator()(std::size_t begin, std::size_t end) const {
      work(begin, end);
      return end - begin;
    }
  };
  std::vector<Worker> workers(threads, Worker{work});
  in_chunks(count, workers, [](std::size_t) {});
}

}  // namespace

// Sums over all members, on all of them.
class Stream::All {
 public:
  All(net::Transport& transport, std::uint16_t channel)
      : transport_(transport), channel_(channel), program_(collective::verify(collective::direct_all_reduce(transport.size()))) {
    if (transport.size() == 1) return;
    std::vector<net::Rank> everybody(transport.size());
    std::iota(everybody.begin(), everybody.end(), 0u);
    runner_ = std::make_shared<collective::Runner>(transport, everybody);
  }
  ~All() { collective::let_go(runner_); }

  template <class Number>
  void sum(std::vector<Number>& numbers, const std::string& what) {
    if (!runner_ || numbers.empty()) return;
    std::vector<Number> sums(numbers.size());
    collective::Run run;
    run.type = std::is_same_v<Number, double> ? DType::f64 : DType::f32;
    run.operation = net::operation_in(channel_, calls_++);
    run.label = "sums over all members of " + what;
    runner_->run(program_, collective::Layout::even(program_.program(), transport_.rank(), numbers.size()),
                 {reinterpret_cast<const std::byte*>(numbers.data()), reinterpret_cast<std::byte*>(sums.data())}, run,
                 transport_.now() + std::chrono::seconds(300));
    numbers = std::move(sums);
  }
  // What of `count` things is this member's: from `first` to `second` - 1.
  std::pair<std::size_t, std::size_t> share_of(std::size_t count) const {
    return {count * transport_.rank() / transport_.size(), count * (transport_.rank() + std::size_t{1}) / transport_.size()};
  }

 private:
  net::Transport& transport_;
  const std::uint16_t channel_;
  const collective::Verified program_;
  std::shared_ptr<collective::Runner> runner_;
  std::uint64_t calls_ = 0;
};

// A batch as this member learns from it: the words of all its documents, and the tokens of its own.
struct Stream::Batch {
  std::vector<std::uint32_t> words;        // ascending
  std::vector<float> rows;                 // of each word: exp(E ln beta), then sums over documents of n_dw phi_dwk
  std::vector<std::uint64_t> offsets = {0};  // own document d has entries offsets[d] to offsets[d + 1] - 1
  std::vector<Posterior::Word> entries;
  std::vector<float> thetas, ratios;       // by own document and topic; by entry
};

Stream::Stream(net::Transport& transport, data::Names vocabulary, const StreamOptions& options)
    : vocabulary_(std::move(vocabulary)), options_(checked(options, vocabulary_.size())), topics_(static_cast<std::uint32_t>(options.prior.alpha.size())),
      excess_(std::size_t{vocabulary_.size()} * topics_), totals_(topics_), all_(std::make_unique<All>(transport, options.channel)) {
  on_threads(vocabulary_.size(), options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * topics_; i < end * topics_; ++i)
      excess_[i] = static_cast<float>(gamma_of_100(random_bits(options_.seed, i)) - options_.prior.beta);
  });
  for (std::size_t i = 0; i < excess_.size(); ++i) totals_[i % topics_] += excess_[i];
}

Stream::~Stream() = default;

Stream::Batch Stream::batch_of(const text::Documents& documents) const {
  Batch batch;
  batch.words.assign(documents.words().begin(), documents.words().end());
  std::ranges::sort(batch.words);
  batch.words.erase(std::ranges::unique(batch.words).begin(), batch.words.end());
  if (!batch.words.empty() && batch.words.back() >= vocabulary_.size())
    throw Error(Code::invalid_argument, "a document has a word that the vocabulary lacks", "", "leave such words out");
  const auto [begin, end] = all_->share_of(documents.size());
  std::vector<std::uint32_t> sorted;
  for (std::size_t d = begin; d < end; ++d) {
    sorted.assign(documents[d].begin(), documents[d].end());
    std::ranges::sort(sorted);
    auto row = batch.words.begin();
    for (std::size_t i = 0; i < sorted.size();) {
      const std::size_t first = i;
      while (i < sorted.size() && sorted[i] == sorted[first]) ++i;
      row = std::lower_bound(row, batch.words.end(), sorted[first]);
      batch.entries.push_back({static_cast<std::uint32_t>(row - batch.words.begin()), static_cast<float>(i - first)});
    }
    batch.offsets.push_back(batch.entries.size());
  }
  return batch;
}

// rows: exp(E ln beta), over the highest of each word's.
void Stream::weigh(Batch& batch) const {
  const double beta_sum = options_.prior.beta * vocabulary_.size();
  std::vector<double> of_totals(topics_);
  for (Topic k = 0; k < topics_; ++k) of_totals[k] = digamma(totals_[k] + beta_sum);
  batch.rows.resize(batch.words.size() * topics_);
  on_threads(batch.words.size(), options_.threads, [&](std::size_t begin, std::size_t end) {
    std::vector<double> logs(topics_);
    for (std::size_t row = begin; row < end; ++row) {
      for (Topic k = 0; k < topics_; ++k) logs[k] = digamma(lambda(batch.words[row], k)) - of_totals[k];
      const double highest = *std::ranges::max_element(logs);
      for (Topic k = 0; k < topics_; ++k) batch.rows[row * topics_ + k] = static_cast<float>(std::exp(logs[k] - highest));
    }
  });
}

void Stream::infer(Batch& batch, const std::function<void(std::size_t document, std::span<const float> gamma)>& visit) const {
  const std::size_t documents = batch.offsets.size() - 1;
  batch.thetas.resize(documents * topics_);
  batch.ratios.resize(batch.entries.size());
  on_threads(documents, options_.threads, [&](std::size_t begin, std::size_t end) {
    Posterior posterior(options_.prior.alpha, options_.iterations, options_.settled);
    for (std::size_t d = begin; d < end; ++d) {
      posterior(std::span(batch.entries).subspan(batch.offsets[d], batch.offsets[d + 1] - batch.offsets[d]), batch.rows);
      std::ranges::copy(posterior.theta(), batch.thetas.begin() + static_cast<std::ptrdiff_t>(d * topics_));
      std::ranges::copy(posterior.ratios(), batch.ratios.begin() + static_cast<std::ptrdiff_t>(batch.offsets[d]));
      if (visit) visit(d, posterior.gamma());
    }
  });
}

// rows: sums over this member's documents, in their order, of n_dw phi_dwk.
void Stream::sum_words(Batch& batch) const {
  struct Of {  // an entry of a word
    std::uint32_t document, entry;
  };
  std::vector<std::uint32_t> begins(batch.words.size() + 1);
  for (const auto& entry : batch.entries) ++begins[entry.row + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<Of> by_word(batch.entries.size());
  std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
  for (std::uint32_t d = 0; d + 1 < batch.offsets.size(); ++d) {
    for (auto i = static_cast<std::uint32_t>(batch.offsets[d]); i < batch.offsets[d + 1]; ++i) by_word[next[batch.entries[i].row]++] = {d, i};
  }
  on_threads(batch.words.size(), options_.threads, [&](std::size_t begin, std::size_t end) {
    std::vector<float> sums(topics_);
    for (std::size_t row = begin; row < end; ++row) {
      std::ranges::fill(sums, 0.0f);
      for (std::uint32_t i = begins[row]; i < begins[row + 1]; ++i) {
        const float ratio = batch.ratios[by_word[i].entry];
        const float* const theta = batch.thetas.data() + std::size_t{by_word[i].document} * topics_;
        for (Topic k = 0; k < topics_; ++k) sums[k] += ratio * theta[k];
      }
      for (Topic k = 0; k < topics_; ++k) batch.rows[row * topics_ + k] *= sums[k];
    }
  });
}

// lambda <- (1 - rho) lambda + rho (beta + scale rows)
void Stream::blend(const Batch& batch, double rho, double scale) {
  shrunk_ *= 1 - rho;
  if (shrunk_ < kLeastShrunk) {
    on_threads(vocabulary_.size(), options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin * topics_; i < end * topics_; ++i) excess_[i] *= static_cast<float>(shrunk_);
    });
    shrunk_ = 1;
  }
  for (double& total : totals_) total *= 1 - rho;
  const auto grown = static_cast<float>(rho * scale / shrunk_);
  for (std::size_t row = 0; row < batch.words.size(); ++row) {
    float* const excess = excess_.data() + std::size_t{batch.words[row]} * topics_;
    const float* const sums = batch.rows.data() + row * topics_;
    for (Topic k = 0; k < topics_; ++k) {
      excess[k] += grown * sums[k];
      totals_[k] += rho * scale * sums[k];
    }
  }
}

void Stream::learn(const text::Documents& documents) {
  if (documents.tokens() == 0) return;
  Batch batch = batch_of(documents);
  weigh(batch);
  infer(batch, {});
  sum_words(batch);
  all_->sum(batch.rows, "a batch");
  documents_ += documents.size();
  tokens_ += documents.tokens();
  const auto all = static_cast<double>(std::max(options_.documents, documents_));
  blend(batch, std::pow(options_.tau0 + batches_, -options_.kappa), all / static_cast<double>(documents.size()));
  ++batches_;
}

Foretold Stream::foretell(const text::Documents& documents) {
  const auto [shown, hidden] = halves(documents, options_.seed, documents_);
  Batch batch = batch_of(shown);
  weigh(batch);
  const double beta_sum = options_.prior.beta * vocabulary_.size();
  const std::size_t first = all_->share_of(documents.size()).first;
  std::vector<double> logs(batch.offsets.size() - 1), sums(2);
  infer(batch, [&, &of = hidden](std::size_t d, std::span<const float> gamma) {
    const double whole = std::accumulate(gamma.begin(), gamma.end(), 0.0);
    for (const std::uint32_t word : of[first + d]) {
      double probability = 0;
      for (Topic k = 0; k < topics_; ++k) probability += gamma[k] * lambda(word, k) / (totals_[k] + beta_sum);
      logs[d] += std::log(probability / whole);
    }
  });
  for (std::size_t d = 0; d < logs.size(); ++d) {
    sums[0] += logs[d];
    sums[1] += static_cast<double>(hidden[first + d].size());
  }
  all_->sum(sums, "how a batch is foretold");
  return {sums[0], static_cast<std::uint64_t>(sums[1]), 0};
}

double Stream::lambda(std::uint32_t word, Topic topic) const {
  return options_.prior.beta + shrunk_ * excess_[std::size_t{word} * topics_ + topic];
}

Model Stream::model() const {
  Model model{.prior = options_.prior, .vocabulary = vocabulary_, .offsets = {0}, .counts = {}, .totals = std::vector<std::uint64_t>(topics_)};
  const double part = documents_ == 0 ? 1 : static_cast<double>(documents_) / static_cast<double>(std::max(options_.documents, documents_));
  std::vector<double> whole(topics_), rest(topics_);
  std::vector<Topic> by_rest(topics_);
  for (std::uint32_t word = 0; word < vocabulary_.size(); ++word) {
    double sum = 0, counted = 0;
    for (Topic k = 0; k < topics_; ++k) {
      const double expected = std::clamp(part * (lambda(word, k) - options_.prior.beta), 0.0, kMostCount);
      sum += expected;
      counted += whole[k] = std::floor(expected);
      rest[k] = expected - whole[k];
    }
    std::iota(by_rest.begin(), by_rest.end(), Topic{0});
    const auto more = std::min(static_cast<std::ptrdiff_t>(std::round(sum - counted)), static_cast<std::ptrdiff_t>(topics_));
    std::partial_sort(by_rest.begin(), by_rest.begin() + more, by_rest.end(),
                      [&](Topic a, Topic b) { return rest[a] != rest[b] ? rest[a] > rest[b] : a < b; });
    for (std::ptrdiff_t i = 0; i < more; ++i) ++whole[by_rest[static_cast<std::size_t>(i)]];
    for (Topic k = 0; k < topics_; ++k) {
      if (whole[k] == 0) continue;
      model.counts.push_back({k, static_cast<std::uint32_t>(whole[k])});
      model.totals[k] += model.counts.back().count;
    }
    model.offsets.push_back(model.counts.size());
  }
  return model;
}

void Stream::keep(const std::filesystem::path& file) const {
  TensorFile content;
  content.others = {{"excess", ViewOf<float>{{vocabulary_.size(), topics_}, excess_}},
                    {"shrunk", TensorOf<double>{{1}, {shrunk_}}},
                    {"totals", TensorOf<double>{{topics_}, totals_}},
                    {"seen", TensorOf<std::uint64_t>{{3}, {batches_, documents_, tokens_}}},
                    {"vocabulary", TensorOf<std::uint64_t>{{1}, {vocabulary_.digest()}}}};
  write_tensor_file(file, content);
}

void Stream::go_on_from(const std::filesystem::path& file) {
  TensorFile content = read_tensor_file(file);
  const auto expect = [&](bool holds, const char* otherwise) {
    if (!holds) throw Error(Code::invalid_argument, otherwise, file.string(), "train anew, or give the flags of that run");
  };
  const auto numbers = [&]<class Number>(const char* name, std::size_t count, Number) {
    const auto found = content.others.find(name);
    auto* const tensor = found == content.others.end() ? nullptr : std::get_if<TensorOf<Number>>(&found->second);
    expect(tensor != nullptr && tensor->values.size() == count, "is not what a stream has kept, or of other topics");
    return std::move(tensor->values);
  };
  expect(numbers("vocabulary", 1, std::uint64_t{})[0] == vocabulary_.digest(), "is of other words");
  const auto excess = content.tensors.find("excess");
  expect(excess != content.tensors.end() && excess->second.values.size() == excess_.size(), "is of another number of topics");
  const auto seen = numbers("seen", 3, std::uint64_t{});
  expect(seen[0] <= seen[1] && seen[1] <= seen[2] && seen[0] <= UINT32_MAX, "has seen fewer documents than batches, or fewer tokens");
  shrunk_ = numbers("shrunk", 1, double{})[0];
  totals_ = numbers("totals", topics_, double{});
  excess_ = std::move(excess->second.values);
  const auto finite = [](double number) { return std::isfinite(number); };
  expect(shrunk_ > 0 && shrunk_ <= 1 && std::ranges::all_of(totals_, finite) && std::ranges::all_of(excess_, finite), "has what is no number");
  batches_ = static_cast<unsigned>(seen[0]);
  documents_ = seen[1];
  tokens_ = seen[2];
}

std::size_t Stream::memory() const { return excess_.size() * sizeof(float) + totals_.size() * sizeof(double); }

}  // namespace shoal::learn::topic

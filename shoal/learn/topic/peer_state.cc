#include "shoal/learn/topic/peer_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "shoal/core/error.h"
#include "shoal/data/lines.h"
#include "shoal/data/number.h"
#include "shoal/learn/topic/tomotopy_file.h"
#include "shoal/text/mallet_state.h"
#include "shoal/text/word_count.h"
#include "shoal/text/words_file.h"

namespace shoal::learn::topic {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kMostTopicsThere = 1u << 24;  // as training takes them

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& hint = {}) {
  throw Error(Code::invalid_argument, what, where, hint);
}

// "a.z.estimate" -> "a" + ending
fs::path beside(const fs::path& file, const char* ending) {
  std::string name = file.string();
  const std::size_t end = name.rfind(".z.");
  return name.substr(0, end) + ending;
}

struct Header {
  std::uint32_t topics = 0;
  double alpha = 0, beta = 0;
};

// The first line of WarpLDA's .model: words, topics, alpha of each, beta.
std::optional<Header> warplda_header(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t words = 0;
  Header header;
  if (in >> words >> header.topics >> header.alpha >> header.beta) return header;
  return std::nullopt;
}

// "tokens word:topic word:topic ...", a document a line.
void read_warplda(const fs::path& file, PeerState& state) {
  data::Lines lines({file});
  std::vector<std::uint32_t> words;
  for (std::string_view line; lines.next(line);) {
    const char* at = line.data();
    const char* const end = at + line.size();
    std::uint64_t tokens = 0;
    text::WordCount pair;  // here a word and its topic
    words.clear();
    bool fine = text::take_number(at, end, tokens);
    while (fine && data::skip_spaces(at, end) != end) {
      fine = text::take_word_count(at, end, pair) && std::max(pair.word, pair.count) < text::kUnknownWord;
      words.push_back(static_cast<std::uint32_t>(pair.word));
      state.topics.push_back(static_cast<Topic>(pair.count));
    }
    if (!fine) refuse("is no document of WarpLDA", lines.place(), "tokens, then word:topic of each, between spaces");
    if (words.size() != tokens) refuse("says " + std::to_string(tokens) + " tokens and has " + std::to_string(words.size()), lines.place());
    state.documents.append(words);
  }
}

template <class Number>
std::vector<Number> read_numbers(std::ifstream& in, std::uint64_t count, std::uint64_t size, const fs::path& file) {
  if (count > size / sizeof(Number)) refuse("is no block of LightLDA, or is cut short", file.string());
  std::vector<Number> numbers(count);
  in.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(count * sizeof(Number)));
  if (!in) refuse("is no block of LightLDA, or is cut short", file.string());
  return numbers;
}

// 64-bit: documents, and where each begins behind; 32-bit: of each document a cursor, then word and topic of each token.
void read_lightlda(const fs::path& file, PeerState& state) {
  std::ifstream in(file, std::ios::binary);
  std::error_code none;
  const std::uint64_t size = fs::file_size(file, none);
  if (!in || none) refuse("cannot be read", file.string());
  const std::uint64_t documents = read_numbers<std::uint64_t>(in, 1, size, file).front();
  if (documents >= size) refuse("is no block of LightLDA, or is cut short", file.string());
  const auto offsets = read_numbers<std::uint64_t>(in, documents + 1, size, file);
  if (!std::is_sorted(offsets.begin(), offsets.end())) refuse("is no block of LightLDA", file.string(), "its documents do not follow each other");
  const auto numbers = read_numbers<std::uint32_t>(in, offsets.back(), size, file);
  std::vector<std::uint32_t> words;
  for (std::uint64_t d = 0; d < documents; ++d) {
    words.clear();
    for (std::uint64_t i = offsets[d] + 1; i + 1 < offsets[d + 1]; i += 2) {
      words.push_back(numbers[i]);
      state.topics.push_back(numbers[i + 1]);
    }
    state.documents.append(words);
  }
}

// Words get the numbers that they have in `words`.
text::Documents renumbered(const text::Documents& documents, const data::Names& from, const data::Names& words, const fs::path& file) {
  text::Documents made;
  std::vector<std::uint32_t> document;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    document.clear();
    for (const std::uint32_t word : documents[d]) {
      const auto number = words.find(from[word]);
      if (!number) refuse("lacks the word \"" + std::string(from[word]) + "\"", file.string());
      document.push_back(*number);
    }
    made.append(document);
  }
  return made;
}

}  // namespace

StateFormat parse_state_format(std::string_view name) {
  if (name == "mallet") return StateFormat::mallet;
  if (name == "warplda") return StateFormat::warplda;
  if (name == "lightlda") return StateFormat::lightlda;
  if (name == "tomotopy") return StateFormat::tomotopy;
  refuse("\"" + std::string(name) + "\" is none", {}, "mallet, warplda, lightlda or tomotopy");
}

void count_into(Model& model, std::span<const std::uint32_t> words, std::span<const Topic> topics) {
  std::vector<std::uint64_t> pairs(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) pairs[i] = std::uint64_t{words[i]} << 32 | topics[i];
  std::sort(pairs.begin(), pairs.end());
  model.totals.assign(model.prior.alpha.size(), 0);
  model.counts.clear();
  model.offsets.assign(1, 0);
  for (std::size_t i = 0; i < pairs.size();) {
    const std::uint64_t pair = pairs[i];
    const std::size_t first = i;
    while (i < pairs.size() && pairs[i] == pair) ++i;
    const auto topic = static_cast<Topic>(pair);
    model.offsets.resize((pair >> 32) + 1, model.counts.size());
    model.counts.push_back({topic, static_cast<std::uint32_t>(i - first)});
    model.totals[topic] += i - first;
  }
  model.offsets.resize(std::size_t{model.vocabulary.size()} + 1, model.counts.size());
}

PeerState read_state(const fs::path& file, StateFormat format, const StateOptions& options) {
  PeerState state;
  std::vector<double> alpha;
  std::optional<Header> header;
  fs::path words_file = options.words_file;
  if (format == StateFormat::mallet) {
    text::MalletState read = text::read_mallet_state(file);
    state.topics = std::move(read.topics);
    state.documents = std::move(read.corpus.documents);
    state.names = std::move(read.corpus.names);
    state.model.vocabulary = std::move(read.corpus.vocabulary);
    alpha = read.prior.alpha;
    if (!alpha.empty() && read.prior.beta > 0) header = {static_cast<std::uint32_t>(alpha.size()), 0, read.prior.beta};
  } else if (format == StateFormat::tomotopy) {
    TomotopyFile read = read_tomotopy_file(file);
    state.topics = std::move(read.topics);
    state.documents = std::move(read.documents);
    state.model.vocabulary = std::move(read.vocabulary);
    alpha = std::move(read.prior.alpha);
    header = {static_cast<std::uint32_t>(alpha.size()), 0, read.prior.beta};
  } else if (format == StateFormat::warplda) {
    read_warplda(file, state);
    header = warplda_header(beside(file, ".model"));
    if (words_file.empty()) words_file = beside(file, ".vocab");
  } else {
    read_lightlda(file, state);
    if (words_file.empty()) refuse("does not say which words there are", file.string(), "--words-file names the dictionary");
  }
  state.documents.finish();
  if (!words_file.empty()) {
    data::Names words = text::read_words_file(words_file);
    if (format == StateFormat::mallet || format == StateFormat::tomotopy)  // they number words for themselves
      state.documents = renumbered(state.documents, state.model.vocabulary, words, words_file);
    state.model.vocabulary = std::move(words);
  }
  if (!header && !(options.topics && options.alpha_sum && options.beta)) {
    refuse("does not say how many topics there are and with which prior", file.string(), "--topics, --alpha-sum and --beta say so");
  }
  const std::uint32_t topics = options.topics.value_or(header ? header->topics : 0);
  if (topics > kMostTopicsThere) refuse("says that there are " + std::to_string(topics) + " topics", file.string(), "at most 16,777,216 are taken");
  if (options.alpha_sum || alpha.size() != topics) alpha.assign(topics, options.alpha_sum ? *options.alpha_sum / topics : header->alpha);
  state.model.prior = {std::move(alpha), options.beta.value_or(header ? header->beta : 0)};
  const auto is_positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (topics == 0 || !is_positive(state.model.prior.beta) || !std::ranges::all_of(state.model.prior.alpha, is_positive)) {
    refuse("needs at least one topic, and alpha and beta above 0", file.string());
  }
  for (const Topic topic : state.topics) {
    if (topic >= topics) refuse("has topic " + std::to_string(topic) + ", and there are " + std::to_string(topics), file.string());
  }
  for (const std::uint32_t word : state.documents.words()) {
    if (word >= state.model.vocabulary.size()) {
      refuse("has word " + std::to_string(word), file.string(), words_file.string() + " has " + std::to_string(state.model.vocabulary.size()));
    }
  }
  count_into(state.model, state.documents.words(), state.topics);
  for (std::size_t d = state.names.size(); d < state.documents.size(); ++d) state.names.push_back(std::to_string(d + 1));
  return state;
}

LogLikelihood log_likelihood(const PeerState& state) {
  LogLikelihood sum = log_likelihood(state.model);
  const Likelihood likelihood(state.model.prior, state.model.words());
  TopicCounter count;
  for (std::size_t d = 0; d < state.documents.size(); ++d) {
    likelihood.add_document(count(std::span(state.topics).subspan(state.documents.offsets[d], state.documents[d].size())), sum);
  }
  return sum;
}

}  // namespace shoal::learn::topic

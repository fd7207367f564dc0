#include "shoal/learn/topic/model_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <system_error>

#include "shoal/core/aside.h"
#include "shoal/learn/topic/top_words.h"

namespace shoal::learn::topic {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeys = 20;  // words of a topic in topic-keys.txt
constexpr std::size_t kPiece = 1 << 20;

template <class Number>
void append(std::string& text, Number number, int digits = 6) {
  char buffer[32];
  std::to_chars_result end;
  if constexpr (std::is_floating_point_v<Number>) {
    end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::general, digits);
  } else {
    end = std::to_chars(buffer, buffer + sizeof buffer, number);
  }
  text.append(buffer, end.ptr);
}

// A text file whose lines line(i, text) appends, for i below count.
template <class Line>
void write_lines(const fs::path& file, std::size_t count, const Line& line) {
  write_aside(file, [&](const fs::path& aside) {
    std::ofstream out(aside, std::ios::binary);
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      line(i, text);
      text += '\n';
      if (text.size() < kPiece && i + 1 < count) continue;
      out << text;
      text.clear();
    }
    out.close();
    if (!out) throw Error(Code::io, "cannot be written: " + std::generic_category().message(errno), file.string());
  });
}

TensorFile to_tensors(const Model& model) {
  TensorOf<std::uint32_t> topics{{model.counts.size()}, {}}, counts = topics;
  topics.values.reserve(model.counts.size());
  counts.values.reserve(model.counts.size());
  for (const auto [topic, count] : model.counts) {
    topics.values.push_back(topic);
    counts.values.push_back(count);
  }
  TensorFile file;
  file.others = {{"offsets", TensorOf<std::uint64_t>{{model.offsets.size()}, model.offsets}},
                 {"topics", std::move(topics)},
                 {"counts", std::move(counts)},
                 {"totals", TensorOf<std::uint64_t>{{model.totals.size()}, model.totals}},
                 {"alpha", TensorOf<double>{{model.prior.alpha.size()}, model.prior.alpha}},
                 {"beta", TensorOf<double>{{1}, {model.prior.beta}}},
                 {"vocabulary", TensorOf<std::uint64_t>{{1}, {model.vocabulary.digest()}}}};
  return file;
}

// What a folder's tensors say, or what is wrong with them.
class Reading {
 public:
  Reading(const ModelFolder& folder, TensorFile file) : folder_(folder), file_(std::move(file)) {}

  template <class Number>
  std::vector<Number> take(const std::string& name) {
    const auto found = file_.others.find(name);
    auto* const tensor = found == file_.others.end() ? nullptr : std::get_if<TensorOf<Number>>(&found->second);
    expect(tensor != nullptr && tensor->shape.size() == 1, "has no " + name);
    return std::move(tensor->values);
  }
  bool has(const std::string& name) const { return file_.others.contains(name); }
  void expect(bool holds, const std::string& otherwise) const {
    if (!holds) throw folder_.damaged(kLearner, "model.safetensors " + otherwise);
  }

 private:
  const ModelFolder& folder_;
  TensorFile file_;
};

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

void write_model(const ModelFolder& folder, const Model& model) {
  folder.write_names("vocab", model.vocabulary);
  write_lines(folder.path() / "word_topic.txt", model.words(), [&](std::size_t w, std::string& text) {
    text += model.vocabulary[static_cast<std::uint32_t>(w)];
    for (const auto [topic, count] : model[static_cast<std::uint32_t>(w)]) {
      text += ' ';
      append(text, topic);
      text += ':';
      append(text, count);
    }
  });
  constexpr std::size_t together = 1 << 16;  // topics whose words are in memory
  std::vector<std::vector<WordCount>> top;
  write_lines(folder.path() / "topic-keys.txt", model.topics(), [&](std::size_t k, std::string& text) {
    if (k % together == 0) {
      std::vector<Topic> next(std::min(together, model.topics() - k));
      std::iota(next.begin(), next.end(), static_cast<Topic>(k));
      top = top_words(model, kKeys, next);
    }
    append(text, k);
    text += '\t';
    append(text, model.prior.alpha[k]);
    char between = '\t';
    for (const WordCount& here : top[k % together]) {
      text += between;
      text += model.vocabulary[here.word];
      between = ' ';
    }
  });
  write_tensor_file(folder.path() / "model.safetensors", to_tensors(model));
}

Model read_model(const ModelFolder& folder) {
  folder.config(kLearner);
  Reading reading(folder, read_tensor_file(folder.path() / "model.safetensors"));
  Model model;
  model.offsets = reading.take<std::uint64_t>("offsets");
  model.totals = reading.take<std::uint64_t>("totals");
  model.prior.alpha = reading.take<double>("alpha");
  const auto beta = reading.take<double>("beta");
  const auto topics = reading.take<std::uint32_t>("topics"), counts = reading.take<std::uint32_t>("counts");
  reading.expect(!model.totals.empty() && model.prior.alpha.size() == model.totals.size(), "does not have as many totals as alpha");
  reading.expect(beta.size() == 1 && is_positive(beta[0]) && std::all_of(model.prior.alpha.begin(), model.prior.alpha.end(), is_positive),
                 "has an alpha or beta that is not above zero");
  model.prior.beta = beta[0];
  reading.expect(topics.size() == counts.size() && !model.offsets.empty() && model.offsets.front() == 0 && model.offsets.back() == topics.size() &&
                     std::is_sorted(model.offsets.begin(), model.offsets.end()),
                 "has rows that do not fit each other");
  std::vector<std::uint64_t> sums(model.topics());
  model.counts.reserve(topics.size());
  for (std::uint32_t w = 0; w < model.words(); ++w) {
    for (std::uint64_t i = model.offsets[w]; i < model.offsets[w + 1]; ++i) {
      reading.expect(topics[i] < model.topics() && counts[i] > 0 && (i == model.offsets[w] || topics[i - 1] < topics[i]),
                     "has a row of topics out of order, for word " + std::to_string(w + 1));
      sums[topics[i]] += counts[i];
      model.counts.push_back({topics[i], counts[i]});
    }
  }
  reading.expect(sums == model.totals, "has totals that are not the sums of its rows");
  std::optional<data::Names> words = folder.names("vocab");
  if (!words || words->size() != model.words()) {
    throw folder.damaged(kLearner, "vocab.txt has " + std::to_string(words ? words->size() : 0) + " words, model.safetensors " +
                                       std::to_string(model.words()));
  }
  if (reading.has("vocabulary")) {  // models of before know only how many words they have
    const auto digest = reading.take<std::uint64_t>("vocabulary");
    if (digest.size() != 1 || digest[0] != words->digest()) throw folder.damaged(kLearner, "vocab.txt has other words than the model");
  }
  model.vocabulary = std::move(*words);
  return model;
}

std::string document_line(std::string_view name, const Mixture& mixture) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '\t', ' ');
  text += '\t';
  append(text, mixture.tokens);
  text += '\t';
  append(text, mixture.unknown);
  std::vector<TopicShare> topics = mixture.topics;
  std::stable_sort(topics.begin(), topics.end(), [](const TopicShare& a, const TopicShare& b) { return a.share > b.share; });
  char between = '\t';
  for (const auto [topic, share] : topics) {
    text += between;
    append(text, topic);
    text += ':';
    append(text, share, 4);
    between = ' ';
  }
  if (topics.empty()) text += '\t';
  return text + '\n';
}

void write_documents(const ModelFolder& folder, std::size_t count, const std::function<std::string(std::size_t document)>& line) {
  write_lines(folder.path() / "doc_topics.tsv", count + 1, [&](std::size_t i, std::string& text) {
    text += i == 0 ? std::string(kDocumentColumns) : line(i - 1);
    text.pop_back();  // write_lines ends each
  });
}

}  // namespace shoal::learn::topic

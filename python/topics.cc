// Topic models (shoal/learn/topic) over matrices of counts and lists of words: what shoal.topics is made of. All documents are on all members.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "arrays.h"
#include "bindings.h"
#include "shoal/core/chunks.h"
#include "shoal/data/read.h"
#include "shoal/learn/topic/completion.h"
#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/fold_in.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/learn/topic/page.h"
#include "shoal/learn/topic/top_words.h"
#include "shoal/learn/topic/training.h"
#include "shoal/learn/topic/update.h"
#include "shoal/nn/session.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

namespace topic = learn::topic;


template <class T>
py::array_t<T> array_from(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

[[noreturn]] void refuse(std::size_t document, const std::string& what, const std::string& hint) {
  throw Error(Code::invalid_argument, "document " + std::to_string(document) + what, "X", hint);
}

// Documents of all members, and what their words' numbers mean; of a model where there is one.
struct Texts {
  text::Documents documents;
  data::Names vocabulary;
};

// Fixed once it is made; threads: any.
struct TopicModel {
  explicit TopicModel(topic::Model of) : model(std::move(of)), phi(model) {}
  const topic::Model model;
  const topic::Phi phi;
};

data::Names names_from(const std::vector<std::string>& words) {
  data::Names names;
  for (const std::string& word : words) names.number(word);
  if (names.size() != words.size()) throw Error(Code::invalid_argument, "a word comes twice", "words", "each column needs a word of its own");
  return names;
}

Texts texts_from_counts(const Array<std::uint64_t>& offsets, const Array<std::uint32_t>& words, const Array<std::uint32_t>& counts) {
  Texts texts;
  std::vector<std::uint32_t> tokens;
  const py::gil_scoped_release release;
  for (py::ssize_t document = 0; document + 1 < offsets.size(); ++document) {
    tokens.clear();
    for (std::uint64_t i = offsets.data()[document]; i < offsets.data()[document + 1]; ++i)
      tokens.insert(tokens.end(), counts.data()[i], words.data()[i]);
    texts.documents.append(tokens);
  }
  texts.documents.finish();
  return texts;
}

// model: words get its numbers, and what it does not know is marked, or with `grow` is added behind its words.
Texts texts_from_lists(const py::iterable& documents, const TopicModel* model, bool grow) {
  Texts texts;
  if (model != nullptr) texts.vocabulary = model->model.vocabulary;
  std::vector<std::uint32_t> tokens;
  std::size_t number = 0;
  for (const py::handle document : documents) {
    ++number;
    tokens.clear();
    if (py::isinstance<py::str>(document) || !py::isinstance<py::iterable>(document))
      refuse(number, " is no list of words", "each one is, such as text.split()");
    for (const py::handle word : py::reinterpret_borrow<py::iterable>(document)) {
      if (!PyUnicode_Check(word.ptr())) refuse(number, " has what is no word", "words are strings; numbers of words are counted in a matrix");
      Py_ssize_t length = 0;
      const char* const letters = PyUnicode_AsUTF8AndSize(word.ptr(), &length);
      if (letters == nullptr) {
        PyErr_Clear();
        refuse(number, " has a word that is no UTF-8", "it holds half of a surrogate pair");
      }
      const std::string_view name(letters, static_cast<std::size_t>(length));
      if (name.empty() || name.find_first_of("\r\n") != name.npos)
        refuse(number, " has a word that is empty or has a line break", "such words cannot be kept");
      if (model != nullptr && !grow) {
        tokens.push_back(texts.vocabulary.find(name).value_or(topic::kUnknown));
      } else {
        tokens.push_back(texts.vocabulary.number(name));
      }
    }
    texts.documents.append(tokens);
  }
  texts.documents.finish();
  texts.documents.ordered = true;
  return texts;
}

// This member's share of documents that have a word in the vocabulary; `kept` are their numbers.
text::Corpus share_of(const Texts& texts, const data::Share& share, std::vector<std::size_t>& kept) {
  text::Corpus corpus;
  corpus.vocabulary = texts.vocabulary;
  corpus.frequencies.assign(texts.vocabulary.size(), 0);
  std::vector<std::uint32_t> words;
  for (std::size_t d = 0; d < texts.documents.size(); ++d) {
    words.assign(texts.documents[d].begin(), texts.documents[d].end());
    std::erase(words, topic::kUnknown);
    if (words.empty()) continue;
    for (const std::uint32_t word : words) ++corpus.frequencies[word];
    corpus.all_tokens += words.size();
    if (!share.holds(corpus.all_documents++)) continue;
    corpus.documents.append(words);
    kept.push_back(d);
  }
  corpus.documents.finish();
  return corpus;
}

topic::Prior prior_from(const Array<double>& alpha, double beta) { return {copied(alpha), beta}; }

struct Learnt {
  std::optional<topic::Model> model;                              // rank 0's
  std::vector<std::uint64_t> documents;                           // of this member: numbers
  std::vector<std::uint32_t> lengths, topics, counts;             // of each: how many topics; all these, with tokens
};

// `after(figures)` hears of every tenth sweep and of the last; whoever interrupts Python is heard after each.
// before: a model that the documents come into.
Learnt learnt_topics(nn::Session& session, const Texts& texts, topic::LdaOptions options, const std::string& parallel, unsigned sweeps, bool optimise,
              const TopicModel* before, const py::object& after) {
  constexpr unsigned kLookEvery = 10;
  std::optional<py::gil_scoped_release> release(std::in_place);
  std::vector<std::size_t> kept;
  {
    learn::Gather gather(session.job().transport(), session.new_channel());
    options.dealing = topic::agreed(gather, {options.threads, 0, topic::kNoLimit}, 0);  // documents are in memory
  }
  const text::Corpus corpus = share_of(texts, options.dealing.share(session.rank(), session.size()), kept);
  const auto topics = static_cast<std::uint32_t>(options.prior.alpha.size());
  const std::size_t rows_before = before != nullptr ? before->model.counts.size() : 0;
  const auto cheaper = [&] { return topic::foreseen(corpus.frequencies, topics, session.size(), session.size() * options.threads, rows_before).cheaper(); };
  options.parallel = parallel == "auto" ? cheaper() : topic::parallel_of(parallel);
  std::optional<topic::Model> under;
  std::optional<topic::Kept> begun;
  if (before != nullptr) {
    under = topic::with_words(before->model, corpus.vocabulary);
    begun = topic::begun(*under, corpus.documents, options.seed, session.rank(), options.threads);
  }
  topic::Lda lda(session.job().transport(), corpus, options, begun ? &*begun : nullptr, under ? &*under : nullptr);
  while (lda.sweeps() < sweeps) {
    topic::train(lda, nullptr, nullptr, {.sweeps = lda.sweeps() + 1, .optimise = optimise, .look_every = 0, .keep_every = 0}, {});
    const bool look = lda.sweeps() % kLookEvery == 0 || lda.sweeps() == sweeps;
    const double likelihood = look ? lda.log_likelihood().per_token() : 0;
    const py::gil_scoped_acquire acquire;
    if (look) after(py::dict(py::arg("sweep") = lda.sweeps(), py::arg("log_likelihood") = likelihood));
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  Learnt result;
  lda.each_document([&](std::size_t document, std::span<const topic::TopicCount> of) {
    result.documents.push_back(kept[document]);
    result.lengths.push_back(static_cast<std::uint32_t>(of.size()));
    for (const auto [topic, count] : of) {
      result.topics.push_back(topic);
      result.counts.push_back(count);
    }
  });
  topic::Model model = lda.model();
  if (session.rank() == 0) result.model = std::move(model);
  return result;
}

py::dict arrays_from(const topic::Model& model) {
  std::vector<std::uint32_t> topics, counts;
  for (const auto [topic, count] : model.counts) {
    topics.push_back(topic);
    counts.push_back(count);
  }
  return py::dict(py::arg("offsets") = array_from(model.offsets), py::arg("topics") = array_from(topics), py::arg("counts") = array_from(counts),
                  py::arg("alpha") = array_from(model.prior.alpha), py::arg("beta") = array_from(std::vector<double>{model.prior.beta}));
}

// Arrays of the model that rank 0 has, nothing elsewhere; and of the topics of this member's documents.
std::pair<py::dict, py::dict> fit_topics(nn::Session& session, const Texts& texts, const Array<double>& alpha, double beta, unsigned sweeps,
                                         bool optimise, const std::string& sampler, const std::string& start, const std::string& parallel,
                                         std::uint64_t seed, std::uint32_t threads, const TopicModel* before, const py::object& after) {
  topic::LdaOptions options{.prior = prior_from(alpha, beta), .seed = seed, .threads = threads, .start = topic::start_of(start),
                            .sampling = {.kind = topic::sampler_of(sampler)}};
  options.channel = session.new_channel();
  for (std::uint16_t i = 1; i < topic::kLdaChannels; ++i) session.new_channel();
  const Learnt result = learnt_topics(session, texts, options, parallel, sweeps, optimise, before, after);
  return {result.model ? arrays_from(*result.model) : py::dict(),
          py::dict(py::arg("documents") = array_from(result.documents), py::arg("lengths") = array_from(result.lengths),
                   py::arg("topics") = array_from(result.topics), py::arg("counts") = array_from(result.counts))};
}

std::unique_ptr<TopicModel> model_from(const Array<std::uint64_t>& offsets, const Array<std::uint32_t>& topics, const Array<std::uint32_t>& counts,
                                       const Array<double>& alpha, double beta, const std::vector<std::string>& words) {
  topic::Model model;
  model.prior = prior_from(alpha, beta);
  model.vocabulary = names_from(words);
  model.offsets = copied(offsets);
  model.totals.assign(model.prior.alpha.size(), 0);
  for (py::ssize_t i = 0; i < topics.size(); ++i) {
    model.counts.push_back({topics.data()[i], counts.data()[i]});
    model.totals.at(topics.data()[i]) += counts.data()[i];
  }
  return std::make_unique<TopicModel>(std::move(model));
}

// theta of each document, a row each.
py::array_t<float> infer_topics(const TopicModel& model, const Texts& texts, std::uint32_t threads) {
  const std::size_t topics = model.phi.topics();
  py::array_t<float> shares(std::vector<py::ssize_t>{static_cast<py::ssize_t>(texts.documents.size()), static_cast<py::ssize_t>(topics)});
  float* const rows = shares.mutable_data();
  const py::gil_scoped_release release;
  struct Inferring {
    topic::FoldIn fold_in;
    topic::Mixture mixture;
    const topic::Phi& phi;
    const text::Documents& documents;
    float* rows;
    char operator()(std::size_t begin, std::size_t end) {
      for (std::size_t d = begin; d < end; ++d) {
        fold_in(documents[d], mixture);
        float* const row = rows + d * phi.topics();
        for (std::size_t k = 0; k < phi.topics(); ++k) row[k] = static_cast<float>(mixture.others * phi.alpha()[k]);
        for (const auto [topic, share] : mixture.topics) row[topic] = static_cast<float>(share);
      }
      return 0;
    }
  };
  std::vector<Inferring> workers(threads, Inferring{topic::FoldIn(model.phi), {}, model.phi, texts.documents, rows});
  in_chunks(texts.documents.size(), workers, [](char) {});
  return shares;
}

// Log-probability of the hidden tokens, how many there were, and how many others of words that the model does not know.
std::tuple<double, std::uint64_t, std::uint64_t> foretell_topics(const TopicModel& model, const Texts& shown, const Texts& hidden,
                                                                 std::uint32_t threads) {
  const auto part = [&](std::size_t begin, std::size_t end) { return topic::complete(model.phi, shown.documents, hidden.documents, begin, end); };
  std::vector workers(threads, part);
  topic::Foretold sum;
  in_chunks(shown.documents.size(), workers, [&](const topic::Foretold& some) { sum += some; });
  return {sum.log_probability, sum.tokens, sum.unknown};
}

std::pair<Texts, Texts> halves(const Texts& texts, std::uint64_t seed) {
  auto [shown, hidden] = topic::halves(texts.documents, seed);
  return {Texts{std::move(shown), {}}, Texts{std::move(hidden), {}}};
}

std::vector<std::vector<std::string>> top_words(const TopicModel& model, std::size_t most) {
  std::vector<std::vector<std::string>> words;
  for (const auto& best : topic::top_words(model.model, most)) {
    words.emplace_back();
    for (const topic::WordCount& here : best) words.back().emplace_back(model.model.vocabulary[here.word]);
  }
  return words;
}

// Of documents that were learnt_topics from: how many topics each has, and which, with how many tokens.
topic::DocumentRows rows_of(const Array<std::uint32_t>& lengths, const Array<std::uint32_t>& topics, const Array<std::uint32_t>& counts) {
  topic::DocumentRows rows;
  std::vector<topic::TopicCount> of;
  std::size_t at = 0;
  for (py::ssize_t d = 0; d < lengths.size(); ++d) {
    of.clear();
    for (std::uint32_t i = 0; i < lengths.data()[d]; ++i, ++at) of.push_back({topics.data()[at], counts.data()[at]});
    rows.add(of);
  }
  return rows;
}
std::vector<topic::Mixture> mixtures(const TopicModel& model, const topic::DocumentRows& rows) {
  std::vector<topic::Mixture> all;
  for (std::size_t d = 0; d < rows.size(); ++d) all.push_back(topic::mixture_of(rows[d], model.phi));
  return all;
}

// A folder as shoal topics train leaves it. config: JSON.
void keep_topics(const TopicModel& model, const std::string& path, const std::string& config, const Array<std::uint32_t>& lengths,
                 const Array<std::uint32_t>& topics, const Array<std::uint32_t>& counts, const std::string& about) {
  learn::ModelFolder folder(path);
  const topic::DocumentRows rows = rows_of(lengths, topics, counts);
  const py::gil_scoped_release release;
  std::vector<topic::Mixture> documents = mixtures(model, rows);
  folder.begin(learn::Json::parse(config));
  topic::write_pages(folder, model.model, topic::Examples(model.model.topics(), {}), documents, about);
  topic::write_documents(folder, documents.size(), [&](std::size_t d) {
    documents[d].keep_largest(model.phi, topic::kSmallestShare, topic::kMostTopics);
    return topic::document_line(std::to_string(d + 1), documents[d]);
  });
  topic::write_document_rows(folder, rows.size() == 0 ? std::nullopt : std::optional(rows));  // a model that was loaded knows none
  topic::write_model(folder, model.model);
}

// pyLDAvis's arguments (JSON), with documents that were learnt_topics from; or with others.
std::string pyldavis(const TopicModel& model, const Array<std::uint32_t>& lengths, const Array<std::uint32_t>& topics,
                     const Array<std::uint32_t>& counts) {
  return topic::pyldavis_of(model.model, mixtures(model, rows_of(lengths, topics, counts)));
}

std::string pyldavis_with(const TopicModel& model, const Texts& texts) {
  std::vector<topic::Mixture> documents(std::min(texts.documents.size(), topic::kPyldavisDocuments));
  topic::FoldIn fold_in(model.phi);
  for (std::size_t d = 0; d < documents.size(); ++d) fold_in(texts.documents[d], documents[d]);
  return topic::pyldavis_of(model.model, documents);
}

// Configuration (JSON), arrays, words, and of its documents how many topics each has, which, and with how many tokens: none where the folder does not
// have them.
py::tuple kept_topics(const std::string& path) {
  const learn::ModelFolder folder(path);
  const topic::Model model = topic::read_model(folder);
  std::vector<std::string> words;
  for (std::uint32_t w = 0; w < model.words(); ++w) words.emplace_back(model.vocabulary[w]);
  py::object documents = py::none();
  if (const std::optional<topic::DocumentRows> rows = topic::read_document_rows(folder, model)) {
    std::vector<std::uint32_t> lengths, topics, counts;
    for (std::size_t d = 0; d < rows->size(); ++d) {
      lengths.push_back(static_cast<std::uint32_t>((*rows)[d].size()));
      for (const auto [topic, count] : (*rows)[d]) {
        topics.push_back(topic);
        counts.push_back(count);
      }
    }
    documents = py::make_tuple(array_from(lengths), array_from(topics), array_from(counts));
  }
  return py::make_tuple(folder.config(topic::kLearner).dump(), arrays_from(model), words, documents);
}

}  // namespace

void bind_topics(py::module_& module) {
  py::class_<Texts>(module, "Texts")
      .def_static("of_counts", &texts_from_counts)
      .def_static("of_lists", &texts_from_lists, py::arg("documents"), py::arg("model").none(true), py::arg("grow"))
      .def("name", [](Texts& texts, const std::vector<std::string>& words) { texts.vocabulary = names_from(words); })
      .def("__len__", [](const Texts& texts) { return texts.documents.size(); })
      .def_property_readonly("tokens",
                             [](const Texts& texts) {  // that are known
                               return texts.documents.tokens() -
                                      static_cast<std::uint64_t>(std::ranges::count(texts.documents.words(), topic::kUnknown));
                             })
      .def_property_readonly("words",
                             [](const Texts& texts) {
                               std::vector<std::string> words;
                               for (std::uint32_t w = 0; w < texts.vocabulary.size(); ++w) words.emplace_back(texts.vocabulary[w]);
                               return words;
                             })
      .def("halves", &halves, Released());
  py::class_<TopicModel>(module, "TopicModel")
      .def(py::init(&model_from), py::arg("offsets"), py::arg("topics"), py::arg("counts"), py::arg("alpha"), py::arg("beta"), py::arg("words"))
      .def("infer", &infer_topics)
      .def("foretell", &foretell_topics, Released())
      .def("top_words", &top_words)
      .def("pyldavis", &pyldavis)
      .def("pyldavis_with", &pyldavis_with, Released())
      .def("keep", &keep_topics);
  module.def("fit_topics", &fit_topics, py::arg("session"), py::arg("texts"), py::arg("alpha"), py::arg("beta"), py::arg("sweeps"),
             py::arg("optimise"), py::arg("sampler"), py::arg("start"), py::arg("parallel"), py::arg("seed"), py::arg("threads"),
             py::arg("before").none(true), py::arg("after"));
  module.def("kept_topics", &kept_topics);
}

}  // namespace shoal::python

// shoal topics infer MODEL TEXTS: a line a document, as in a model's doc_topics.tsv.
#include <fmt/format.h>

#include <fstream>

#include "app/topics.h"
#include "shoal/core/aside.h"
#include "shoal/core/chunks.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/fold_in.h"
#include "shoal/learn/topic/gibbs_fold_in.h"
#include "shoal/learn/topic/model_files.h"

namespace shoal::app {
namespace {

namespace topic = learn::topic;

struct InferOptions {
  TextOptions texts;
  std::string model, output, method = "cvb0";
  std::size_t most = topic::kMostTopics;
  double smallest = topic::kSmallestShare;
  std::uint64_t seed = 1;
  unsigned threads = 0;
};

struct Lines {
  std::string text;
  std::uint64_t tokens = 0, unknown = 0;
};

// Infers documents one after another, on one thread.
class Inferring {
 public:
  Inferring(const topic::Phi& phi, const text::Corpus& corpus, const InferOptions& options)
      : phi_(&phi), corpus_(&corpus), options_(&options), cvb0_(phi), gibbs_(phi, {.seed = options.seed}) {}

  Lines operator()(std::size_t begin, std::size_t end) {
    Lines lines;
    topic::Mixture mixture;
    for (std::size_t d = begin; d < end; ++d) {
      if (options_->method == "gibbs") {
        gibbs_(corpus_->documents[d], d, mixture);
      } else {
        cvb0_(corpus_->documents[d], mixture);
      }
      mixture.keep_largest(*phi_, options_->smallest, options_->most);
      lines.text += topic::document_line(corpus_->names[d], mixture);
      lines.tokens += mixture.tokens;
      lines.unknown += mixture.unknown;
    }
    return lines;
  }

 private:
  const topic::Phi* phi_;
  const text::Corpus* corpus_;
  const InferOptions* options_;
  topic::FoldIn cvb0_;
  topic::GibbsFoldIn gibbs_;
};

int infer(const InferOptions& options) {
  if (options.method != "cvb0" && options.method != "gibbs") {
    throw Error(Code::invalid_argument, "\"" + options.method + "\" is none", "--method", "cvb0 or gibbs");
  }
  if (!(options.smallest >= 0 && options.smallest <= 1)) {
    throw Error(Code::invalid_argument, fmt::format("{} is no share", options.smallest), "--smallest", "between 0 and 1");
  }
  only_one_member("shoal topics infer");
  const TopicsModel from(options.model);
  const topic::Phi phi(from.model);
  const text::Corpus corpus = from.read(options.texts, false);
  std::vector<Inferring> workers(threads_of(options.threads), Inferring(phi, corpus, options));
  Lines sum;
  const auto write = [&](std::FILE* file) {
    std::fwrite(topic::kDocumentColumns.data(), 1, topic::kDocumentColumns.size(), file);
    in_chunks(corpus.documents.size(), workers, [&](const Lines& lines) {
      std::fwrite(lines.text.data(), 1, lines.text.size(), file);
      sum.tokens += lines.tokens;
      sum.unknown += lines.unknown;
    });
  };
  if (options.output.empty()) {
    write(stdout);
  } else {
    write_aside(options.output, [&](const std::filesystem::path& aside) {
      std::FILE* const file = std::fopen(aside.c_str(), "wb");
      if (file == nullptr) throw Error(Code::io, "cannot be written: " + std::generic_category().message(errno), options.output);
      write(file);
      const bool failed = std::ferror(file) != 0;
      if (std::fclose(file) != 0 || failed) throw Error(Code::io, "cannot be written: " + std::generic_category().message(errno), options.output);
    });
  }
  if (sum.unknown > 0) {
    fmt::print(stderr, "{} of {} are of words that the model does not know: they say nothing of topics\n", show_count(sum.unknown),
               show_count(sum.tokens + sum.unknown, "tokens"));
  }
  return 0;
}

}  // namespace

Action declare_topics_infer(CLI::App& app) {
  const auto options = std::make_shared<InferOptions>();
  app.add_option("model", options->model, "folder that shoal topics train left")->required();
  declare_texts(app, options->texts);
  flag(app, "--output", options->output, "write them into this file");
  flag(app, "--method", options->method, "cvb0, the same each time (default), or gibbs, drawn by --seed");
  flag(app, "--seed", options->seed, "of gibbs (default: 1)");
  flag(app, "--most", options->most, fmt::format("topics of a document that are named (default: {})", topic::kMostTopics));
  flag(app, "--smallest", options->smallest, fmt::format("share of a topic that is named (default: {})", topic::kSmallestShare));
  flag(app, "--threads", options->threads, kThreadsOfThis);
  return [options](const Words&) { return infer(*options); };
}

}  // namespace shoal::app

#include "app/topics_text.h"

#include <filesystem>

#include "shoal/core/error.h"
#include "shoal/data/number.h"

namespace shoal::app {
namespace {

// What parsing throws, with the flag as its place.
template <class Parse>
auto of_flag(const char* flag, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw Error(error.code(), error.fact(), flag, error.hint());
  }
}

void read_pairs(const std::string& said, text::VocabularyRules& rules) {
  if (said.empty()) return;
  const char* at = said.data();
  const char* const end = at + said.size();
  rules.pairs = said == "all" ? text::Pairs::all : text::Pairs::frequent;
  if (said == "all") return;
  if (data::scan_index(at, end, rules.pair_tokens) == data::Scan::fine && at == end && rules.pair_tokens > 0) return;
  throw Error(Code::invalid_argument, "'" + said + "' is no number of tokens", "--bigrams", "a number above 0, or all");
}

}  // namespace

text::Source TextOptions::source() const {
  text::Source source;
  source.files.assign(files.begin(), files.end());
  source.format = of_flag("--format", [&] { return text::parse_format(format); });
  source.words_file = words_file;
  source.column = column;
  source.tokens = {token_pattern, keep_case};
  source.rules.stop_words = stop_words;
  if (!min_documents.empty()) source.rules.min_documents = of_flag("--min-df", [&] { return text::parse_limit(min_documents); });
  if (!max_documents.empty()) source.rules.max_documents = of_flag("--max-df", [&] { return text::parse_limit(max_documents); });
  source.rules.top_words = top_words;
  source.rules.most_words = most_words;
  read_pairs(pairs, source.rules);
  if (on_disk) source.documents_in = std::filesystem::current_path();
  return source;
}

learn::Json TextOptions::read_from() const {
  return {{"files", files}, {"format", format}, {"column", column}, {"vocab", words_file}};
}

learn::Json TextOptions::words() const {
  return {{"token_pattern", token_pattern}, {"keep_case", keep_case}, {"stop_words", stop_words}, {"min_df", min_documents},
          {"max_df", max_documents},        {"top_words", top_words}, {"max_words", most_words},  {"bigrams", pairs}};
}

void TextOptions::words_as(const learn::Json& words) try {
  token_pattern = words.value("token_pattern", std::string());
  keep_case = words.value("keep_case", false);
  stop_words = words.value("stop_words", std::string());
  pairs = words.value("bigrams", std::string());
} catch (const learn::Json::exception&) {
  throw Error(Code::invalid_argument, "does not say how words are told from text", "config.json", "is the model's folder as shoal topics train left it?");
}

void declare_texts(CLI::App& app, TextOptions& options) {
  app.add_option("texts", options.files,
                 "text, packed or not: a document a line, CSV or TSV, folders with a document a file; bags of words of UCI, LDA-C, LIBSVM, LightLDA, "
                 "WarpLDA, MALLET or MatrixMarket")
      ->required();
  flag(app, "--format", options.format,
       "auto (default: by the first lines), lines, column, files, yahoo (id1 id2 word ...), mallet (name<TAB>label<TAB>text), mallet-state, uci, "
       "lda-c, "
       "libsvm, lightlda, matrix-market");
  flag(app, "--column", options.column, "of CSV and TSV, the name or number of the text's column (default: the one with most text)");
  flag(app, "--vocab", options.words_file, "what words are called that have numbers, a word a line (default for docword.NAME: vocab.NAME beside it)");
  switch_on(app, "--on-disk", options.on_disk, "keep documents in files without names in this folder, not in memory");
}

void declare_words(CLI::App& app, TextOptions& options) {
  flag(app, "--token-pattern", options.token_pattern,
       "regular expression whose matches are words (default: what lies between word boundaries and has a letter)");
  switch_on(app, "--keep-case", options.keep_case, "tell words in upper case from those in lower case");
  flag(app, "--stop-words", options.stop_words, "words to leave out: english (default for text), none, or a file with a word a line");
  flag(app, "--min-df", options.min_documents, "leave out words in fewer documents: a number, or a share such as 0.001 or 0.1%");
  flag(app, "--max-df", options.max_documents, "leave out words in more documents: a number, or a share such as 0.5 or 50%");
  flag(app, "--top-words", options.top_words, "leave out that many of the most frequent words");
  flag(app, "--max-words", options.most_words, "keep only that many of the most frequent words");
  flag(app, "--bigrams", options.pairs,
       "a number: two words that follow each other at least so often are one, a_b; all: each two that follow each other are");
}

}  // namespace shoal::app

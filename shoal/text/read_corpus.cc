#include <algorithm>
#include <array>

#include "shoal/core/error.h"
#include "shoal/data/lines.h"
#include "shoal/text/bags.h"
#include "shoal/text/columns.h"
#include "shoal/text/gathering.h"
#include "shoal/text/mallet_state.h"
#include "shoal/text/source.h"
#include "shoal/text/texts.h"
#include "shoal/text/words_file.h"

namespace shoal::text {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstLines = 32;  // that tell the format

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

// Of folders all files in them, in the order of their names.
std::vector<fs::path> files_of(const std::vector<fs::path>& given) {
  std::vector<fs::path> files;
  for (const fs::path& path : given) {
    std::error_code error, unknown;
    if (!is_folder(path)) {
      files.push_back(path);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    auto at = fs::recursive_directory_iterator(path, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (is_hidden(at->path())) {
        if (at->is_directory(unknown)) at.disable_recursion_pending();
      } else if (at->is_regular_file(unknown)) {
        files.push_back(at->path());
      }
    }
    if (error) refuse("cannot be read: " + error.message(), path.string(), {});
    std::sort(files.begin() + first, files.end());
    if (files.size() == static_cast<std::size_t>(first)) refuse("has no file", path.string(), "name the folder that the documents are in");
  }
  return files;
}

bool is_text(Format format) { return format == Format::lines || format == Format::column || format == Format::files || format == Format::mallet; }

bool is_one_file(Format format) { return format == Format::uci || format == Format::mallet_state || format == Format::matrix_market; }

std::vector<std::string> first_lines(data::Lines& lines) {
  std::vector<std::string> first;
  for (const auto& ahead : lines.ahead(kFirstLines)) {
    if (ahead.file == 0) first.push_back(ahead.text);
  }
  return first;
}

Format told(const Source& source, data::Lines& lines) {
  if (!source.column.empty()) return Format::column;
  if (std::any_of(source.files.begin(), source.files.end(), is_folder)) return Format::files;
  const fs::path& first = lines.files().front();
  const Format format = tell_format(first_lines(lines), first);
  const auto other = std::ranges::find_if(lines.files(), [&](const fs::path& file) { return is_table(file) != is_table(first); });
  if (other != lines.files().end() && is_text(format)) {
    const auto [table, text] = is_table(first) ? std::pair(first, *other) : std::pair(*other, first);
    refuse("is a table by its name, and " + text.string() + " is none", table.string(),
           "name files of one kind, or say --format column or --format lines");
  }
  return format;
}

// The formats that have numbers for words.
struct Numbered {
  Format format;
  const char* form;
  std::uint32_t first;  // word
  void (*read)(data::Lines&, NumberedWords&, Gathering&);
};
constexpr std::array<Numbered, 5> kNumbered = {{
    {Format::uci, "UCI's bag of words", 1, read_uci},
    {Format::lda_c, "LDA-C's format", 0, read_lda_c},
    {Format::libsvm, "LIBSVM's format", 1, read_labelled_counts},
    {Format::lightlda, "LightLDA's format", 0, read_labelled_counts},
    {Format::matrix_market, "a matrix", 1,
     [](data::Lines& lines, NumberedWords& words, Gathering& gathering) { read_matrix(lines.files().front(), words, gathering); }},
}};

// Returns what the files were taken for.
std::string read(const Source& source, Format format, data::Lines& lines, Gathering& gathering) {
  const fs::path& file = lines.files().front();
  const auto numbered = std::find_if(kNumbered.begin(), kNumbered.end(), [&](const Numbered& one) { return one.format == format; });
  if (numbered != kNumbered.end()) {
    NumberedWords words(gathering, source.words_file.empty() ? words_file_beside(file) : source.words_file, numbered->first);
    numbered->read(lines, words, gathering);
    const bool called = !words.file().empty();
    return numbered->form + (called ? " with the words of " + words.file().filename().string() : " whose words are called by their numbers");
  }
  if (format == Format::mallet_state) {
    read_mallet_state(lines, gathering);
    return "MALLET's state";
  }
  if (format == Format::yahoo) {
    read_yahoo(lines, gathering);
    return "words behind two names";
  }
  Tokens tokens(source.tokens);
  switch (format) {
    case Format::mallet: read_mallet(lines, tokens, gathering); return "text behind name and label";
    case Format::files: read_files(lines.files(), tokens, gathering); return "a document a file";
    case Format::column: {
      const Columns columns = columns_of(first_lines(lines), source.column, file.string());
      Texts texts(tokens, gathering);
      read_columns(lines, columns, texts);
      return to_text(columns);
    }
    default: read_lines(lines, tokens, gathering); return "a document a line";
  }
}

// prepare(gathering) before the first document.
template <class Prepare>
std::pair<Corpus, Reading> gathered(const Source& source, const data::Share& share, const Prepare& prepare) {
  data::Lines lines(files_of(source.files));
  const Format format = source.format == Format::automatic ? told(source, lines) : source.format;
  if (is_one_file(format) && lines.files().size() > 1) {
    refuse("is one file in this format, and " + std::to_string(lines.files().size()) + " are given", lines.files().front().string(), "name one");
  }
  const bool ordered = is_text(format) || format == Format::yahoo || format == Format::mallet_state;
  Source taken = source;
  if (!ordered && source.rules.pairs != Pairs::none) {
    if (source.vocabulary == nullptr)
      refuse("is a bag of words, in which none follows another", lines.files().front().string(), "leave pairs of words out");
    taken.rules.pairs = Pairs::none;  // of a model: the bag has them, or not
  }
  if (std::error_code none; format == Format::matrix_market && fs::is_fifo(lines.files().front(), none)) {
    refuse("is a pipe, and a matrix does not come through one", lines.files().front().string(), "write it into a file");
  }
  Gathering gathering(taken, share, is_text(format) ? "english" : "none");
  prepare(gathering);
  std::string form = read(source, format, lines, gathering);
  return gathering.finish(lines.files(), std::move(form), ordered);
}

}  // namespace

std::pair<Corpus, Reading> read_corpus(const Source& source, const data::Share& share) {
  return gathered(source, share, [](Gathering&) {});
}

Reading read_batches(const Source& source, std::uint64_t documents, const std::function<void(const Corpus& batch)>& take) {
  return gathered(source, {}, [&](Gathering& gathering) { gathering.hand_over(documents, take); }).second;
}

}  // namespace shoal::text

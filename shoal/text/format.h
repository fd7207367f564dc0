// Which format text is in. Pure; threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace shoal::text {

enum class Format : std::uint8_t {
  automatic,      // by the files' names and first lines
  lines,          // plain text, a document a line
  column,         // CSV or TSV, a document a record, one field of it the text
  files,          // plain text, a document a file
  yahoo,          // "id1 id2 word word ...", of WarpLDA and Yahoo! LDA
  mallet,         // "name<TAB>label<TAB>text"
  mallet_state,   // MALLET's --output-state, a token a line
  uci,            // UCI's bag of words: documents, words and entries, a line each; then "document word count"
  lda_c,          // Blei's lda-c: "distinct word:count ...", words from 0
  libsvm,         // "label word:count ...", words from 1
  lightlda,       // the same, words from 0
  matrix_market,  // a document a row
};
Format parse_format(std::string_view name);  // "matrix-market"; throws Error{invalid_argument} that lists all
std::string name(Format format);

// By its first lines; where these say nothing, by its name. What looks like plain text is `lines`: `yahoo` and `mallet` have to be said.
bool is_table(const std::filesystem::path& file);  // by its name: CSV or TSV
Format tell_format(std::span<const std::string> first_lines, const std::filesystem::path& file);

}  // namespace shoal::text

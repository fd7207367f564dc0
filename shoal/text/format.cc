#include "shoal/text/format.h"

#include <algorithm>
#include <array>

#include "shoal/core/error.h"
#include "shoal/data/number.h"
#include "shoal/text/word_count.h"

namespace shoal::text {
namespace {

struct Named {
  Format format;
  std::string_view name;
};
constexpr std::array<Named, 12> kFormats = {{{Format::automatic, "auto"},
                                             {Format::lines, "lines"},
                                             {Format::column, "column"},
                                             {Format::files, "files"},
                                             {Format::yahoo, "yahoo"},
                                             {Format::mallet, "mallet"},
                                             {Format::mallet_state, "mallet-state"},
                                             {Format::uci, "uci"},
                                             {Format::lda_c, "lda-c"},
                                             {Format::libsvm, "libsvm"},
                                             {Format::lightlda, "lightlda"},
                                             {Format::matrix_market, "matrix-market"}}};

using Lines = std::span<const std::string>;

// How many whole numbers a line is made of; 0 where there is anything else in it.
std::size_t whole_numbers(std::string_view line) {
  const char* at = line.data();
  const char* const end = at + line.size();
  std::size_t count = 0;
  for (std::uint64_t number = 0; data::skip_spaces(at, end) != end; ++count) {
    if (!take_number(at, end, number)) return 0;
  }
  return count;
}

bool is_uci(Lines first) {
  return first.size() >= 3 && std::all_of(first.begin(), first.begin() + 3, [](const auto& line) { return whole_numbers(line) == 1; }) &&
         (first.size() == 3 || whole_numbers(first[3]) == 3);
}

// "label word:count word:count ..."
struct Counts {
  std::string_view label;
  std::size_t pairs = 0;
  bool zero = false;  // there is a word 0
};
bool is_counts(std::string_view line, Counts& counts) {
  const char* const end = line.data() + line.size();
  const char* at = std::find_if(line.data(), end, data::is_space);
  counts = {.label = {line.data(), at}};
  if (counts.label.empty() || counts.label.find(':') != std::string_view::npos) return false;
  for (; data::skip_spaces(at, end) != end; ++counts.pairs) {
    WordCount pair;
    if (!take_word_count(at, end, pair)) return false;
    counts.zero = counts.zero || pair.word == 0;
  }
  return true;
}

// LDA-C, LightLDA or LIBSVM; automatic: none of them.
Format format_of_counts(Lines first) {
  bool lda_c = true, tabs = true, zero = false;
  std::size_t pairs = 0;
  for (const auto& line : first) {
    Counts counts;
    if (data::skip_spaces(line.data(), line.data() + line.size()) == line.data() + line.size()) continue;
    if (!is_counts(line, counts)) return Format::automatic;
    lda_c = lda_c && counts.label == std::to_string(counts.pairs);
    tabs = tabs && line.find('\t') == counts.label.size();
    zero = zero || counts.zero;
    pairs += counts.pairs;
  }
  if (pairs == 0) return Format::automatic;
  return lda_c ? Format::lda_c : tabs || zero ? Format::lightlda : Format::libsvm;
}

bool have_as_many_tabs(Lines first) {
  const auto tabs = [](const std::string& line) { return std::count(line.begin(), line.end(), '\t'); };
  return !first.empty() && tabs(first.front()) > 0 &&
         std::all_of(first.begin(), first.end(), [&](const auto& line) { return tabs(line) == tabs(first.front()); });
}

}  // namespace

Format parse_format(std::string_view name) {
  std::string known;
  for (const auto& [format, called] : kFormats) {
    if (called == name) return format;
    known += (known.empty() ? "" : ", ") + std::string(called);
  }
  throw Error(Code::invalid_argument, data::quote(name) + " is no format", {}, "there are " + known);
}

std::string name(Format format) {
  return std::string(std::find_if(kFormats.begin(), kFormats.end(), [&](const Named& named) { return named.format == format; })->name);
}

bool is_table(const std::filesystem::path& file) {
  const std::string called = file.filename();
  return called.find(".csv") != std::string::npos || called.find(".tsv") != std::string::npos;
}

Format tell_format(Lines first, const std::filesystem::path& file) {
  if (first.empty()) return Format::lines;
  if (first.front().starts_with("%%MatrixMarket")) return Format::matrix_market;
  if (first.front().starts_with("#doc source pos typeindex type topic")) return Format::mallet_state;
  if (is_uci(first)) return Format::uci;
  if (const Format counts = format_of_counts(first); counts != Format::automatic) return counts;
  return is_table(file) || have_as_many_tabs(first) ? Format::column : Format::lines;
}

}  // namespace shoal::text

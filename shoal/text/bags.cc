#include "shoal/text/bags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/data/matrix_market.h"
#include "shoal/data/number.h"
#include "shoal/text/word_count.h"
#include "shoal/text/words_file.h"

namespace shoal::text {
namespace {

using data::quote;
using data::Reason;
using data::Verdict;

Verdict refused(Reason reason, std::string what, std::string hint) { return Verdict::refused({reason, std::move(what), std::move(hint)}); }

void require(const Verdict& verdict, const std::string& place) {
  if (verdict.fault) throw Error(Code::invalid_argument, verdict.fault->what, place, verdict.fault->hint);
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

// "word:count word:count ..." in [at, end), each once or more often. Returns how many; a fault in `verdict`.
std::uint64_t add_counts(const char* at, const char* end, NumberedWords& words, Verdict& verdict) {
  std::uint64_t pairs = 0;
  for (at = data::skip_spaces(at, end); at != end; at = data::skip_spaces(at, end)) {
    const char* const token = at;
    WordCount pair;
    if (!take_word_count(at, end, pair)) {
      verdict = refused(Reason::number, quote({token, std::find_if(token, end, data::is_space)}) + " is no word:count", "both are whole numbers");
      return pairs;
    }
    verdict = words.add(pair.word, pair.count);
    if (verdict.fault) return pairs;
    ++pairs;
  }
  return pairs;
}

}  // namespace

NumberedWords::NumberedWords(Gathering& gathering, const std::filesystem::path& words_file, std::uint32_t first)
    : gathering_(gathering), file_(words_file), first_(first) {
  if (file_.empty()) return;
  data::Names words = read_words_file(file_);
  size_ = words.size();
  gathering_.have_words(std::move(words));
}

Verdict NumberedWords::add(std::uint64_t number, std::uint64_t count) {
  if (number < first_) return refused(Reason::range, "there is a word 0", "words count from 1 in this format");
  if (count > kMostTokens || gathering_.tokens() + count > kMostTokens) {
    return refused(Reason::range, "the document has more than " + std::to_string(kMostTokens) + " tokens", "longer ones cannot be read");
  }
  if (size_ > 0) {
    if (number - first_ >= size_) {
      return refused(Reason::range, "there is no word " + std::to_string(number), file_.string() + " has " + std::to_string(size_) + " words");
    }
    gathering_.add(static_cast<std::uint32_t>(number - first_), static_cast<std::uint32_t>(count));
    return {.sample = true};
  }
  char digits[20];
  const std::string_view called(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  for (; count > 0; --count) gathering_.add(called);
  return {.sample = true};
}

Verdict parse_uci(std::string_view line, UciEntry& entry) {
  const char* at = line.data();
  const char* const end = at + line.size();
  if (take_number(at, end, entry.document) && take_number(at, end, entry.word) && take_number(at, end, entry.count) &&
      data::skip_spaces(at, end) == end) {
    return {.sample = true};
  }
  if (is_blank(line)) return {};
  return refused(Reason::fields, quote(line) + " is no entry", "a line is: document word count, three whole numbers");
}

void read_uci(data::Lines& lines, NumberedWords& words, Gathering& gathering) {
  std::uint64_t sizes[3] = {};
  const char* const what[] = {"documents", "words", "entries"};
  std::string_view line;
  for (int i = 0; i < 3; ++i) {
    const bool there = lines.next(line);
    const char* at = there ? line.data() : nullptr;
    const char* const end = there ? at + line.size() : nullptr;
    if (there && take_number(at, end, sizes[i]) && data::skip_spaces(at, end) == end) continue;
    throw Error(Code::invalid_argument, std::string("does not say how many ") + what[i] + " there are",
                there ? lines.place() : lines.files().front().string(), "the first three lines are the numbers of documents, words and entries");
  }
  if (words.size() > 0 && words.size() != sizes[1]) {
    throw Error(Code::invalid_argument, "says there are " + std::to_string(sizes[1]) + " words", lines.files().front().string() + ":2",
                words.file().string() + " has " + std::to_string(words.size()));
  }
  std::uint64_t document = 0, entries = 0;
  UciEntry entry;
  while (lines.next(line)) {
    const Verdict verdict = parse_uci(line, entry);
    if (!verdict.sample) {
      require(verdict, lines.place());
      continue;
    }
    const auto refuse = [&](std::string fact, std::string hint) {
      throw Error(Code::invalid_argument, std::move(fact), lines.place(), std::move(hint));
    };
    if (++entries > sizes[2]) refuse("more entries than the " + std::to_string(sizes[2]) + " of line 3", "correct the sizes");
    if (entry.document == 0 || entry.document > sizes[0]) {
      refuse("there is no document " + std::to_string(entry.document), "documents count from 1 to the " + std::to_string(sizes[0]) + " of line 1");
    }
    if (entry.word == 0 || entry.word > sizes[1]) {
      refuse("there is no word " + std::to_string(entry.word), "words count from 1 to the " + std::to_string(sizes[1]) + " of line 2");
    }
    if (entry.document != document) {
      if (entry.document < document) {
        refuse("document " + std::to_string(entry.document) + " stands after " + std::to_string(document),
               "documents ascend: sort the lines by them");
      }
      if (document != 0) gathering.end_document(std::to_string(document));
      gathering.empty_documents(document + 1, entry.document);
      document = entry.document;
    }
    require(words.add(entry.word, entry.count), lines.place());
  }
  if (document != 0) gathering.end_document(std::to_string(document));
  if (entries != sizes[2]) {
    throw Error(Code::invalid_argument, "ends after " + std::to_string(entries) + " of " + std::to_string(sizes[2]) + " entries", lines.place(),
                "was it cut short?");
  }
  gathering.empty_documents(document + 1, sizes[0] + 1);
}

void read_lda_c(data::Lines& lines, NumberedWords& words, Gathering& gathering) {
  for (std::string_view line; lines.next(line);) {
    if (is_blank(line)) continue;
    const char* at = line.data();
    const char* const end = at + line.size();
    std::uint64_t distinct = 0;
    Verdict verdict;
    if (!take_number(at, end, distinct) || (at != end && !data::is_space(*at))) {
      verdict =
          refused(Reason::number, quote(line) + " does not begin with a number", "a line is: how many different words, then word:count of each");
    } else if (const std::uint64_t pairs = add_counts(at, end, words, verdict); !verdict.fault && pairs != distinct) {
      verdict = refused(Reason::fields, "says " + std::to_string(distinct) + " different words and has " + std::to_string(pairs),
                        "was the line cut short?");
    }
    require(verdict, lines.place());
    gathering.end_document();
  }
}

void read_labelled_counts(data::Lines& lines, NumberedWords& words, Gathering& gathering) {
  std::string label;
  for (std::string_view line; lines.next(line);) {
    if (is_blank(line)) continue;
    const char* const end = line.data() + line.size();
    const char* const begin = data::skip_spaces(line.data(), end);
    const char* const at = std::find_if(begin, end, data::is_space);
    label.assign(begin, at);
    Verdict verdict;
    if (label.find(':') != std::string::npos) {
      verdict = refused(Reason::fields, quote(label) + " is no label", "a line is: label word:count word:count ...");
    } else {
      add_counts(at, end, words, verdict);
    }
    require(verdict, lines.place());
    gathering.end_document(label);
  }
}

void read_matrix(const std::filesystem::path& file, NumberedWords& words, Gathering& gathering) {
  const data::Triples triples = data::read_matrix_market(file).first;
  if (words.size() > 0 && words.size() != triples.column_count) {
    throw Error(Code::invalid_argument, "has " + std::to_string(triples.column_count) + " columns", file.string(),
                words.file().string() + " has " + std::to_string(words.size()) + " words; rows are documents and columns words");
  }
  std::vector<std::uint64_t> order(triples.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::pair(triples.rows[a], triples.columns[a]) < std::pair(triples.rows[b], triples.columns[b]);
  });
  std::uint64_t before = 0;  // rows that are done
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::uint64_t i = order[at], row = triples.rows[i], column = triples.columns[i];
    const float count = triples.values[i];
    const auto refuse = [&](const std::string& what) {
      throw Error(Code::invalid_argument, "row " + std::to_string(row + 1) + " has " + what + " in column " + std::to_string(column + 1),
                  file.string(), "entries are how often a word is in a document");
    };
    if (!(count >= 0) || count != std::floor(count)) refuse(std::to_string(count));
    if (at == 0 || triples.rows[order[at - 1]] != row) gathering.empty_documents(before + 1, row + 1);
    const Verdict verdict = words.add(column + 1, static_cast<std::uint64_t>(std::min(count, 1e9f)));
    if (verdict.fault) refuse(verdict.fault->what);
    if (at + 1 < order.size() && triples.rows[order[at + 1]] == row) continue;
    gathering.end_document(std::to_string(row + 1));
    before = row + 1;
  }
  gathering.empty_documents(before + 1, triples.row_count + 1);
}

}  // namespace shoal::text

#include "shoal/text/words_file.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/data/lines.h"
#include "shoal/data/number.h"

namespace shoal::text {
namespace {

namespace fs = std::filesystem;

struct Word {
  std::uint64_t number;
  std::string text;
  std::uint64_t line;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// "number<TAB>word<TAB>tokens", the last may be missing.
bool read_word(std::string_view line, Word& word) {
  const char* at = line.data();
  const char* const end = at + line.size();
  if (data::scan_index(at, end, word.number) != data::Scan::fine || at == end || *at != '\t') return false;
  const std::string_view rest(at + 1, end);
  word.text = trimmed(rest.substr(0, rest.find('\t')));
  return !word.text.empty();
}

// gensim's dictionaries have the number of documents above their words.
bool begins_with_documents(data::Lines& lines) {
  const auto& ahead = lines.ahead(2);
  Word word;
  if (ahead.size() < 2 || !read_word(ahead[1].text, word)) return false;
  const std::string_view first = trimmed(ahead[0].text);
  return !first.empty() && first.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

fs::path words_file_beside(const fs::path& documents) {
  constexpr std::string_view kBegin = "docword.";
  const std::string name = documents.filename();
  if (!name.starts_with(kBegin)) return {};
  for (std::string stem = name.substr(kBegin.size());; stem.erase(stem.rfind('.'))) {  // "nips.train.txt.gz", then "nips.train.txt", ...
    for (const char* ending : {"", ".txt", ".txt.gz"}) {
      const fs::path candidate = documents.parent_path() / ("vocab." + stem + ending);
      std::error_code none;
      if (fs::is_regular_file(candidate, none)) return candidate;
    }
    if (stem.find('.') == std::string::npos) return {};
  }
}

data::Names read_words_file(const fs::path& file) {
  data::Lines lines({file});
  std::vector<Word> words;
  bool numbered = false;
  std::string_view line;
  if (begins_with_documents(lines)) lines.next(line);
  while (lines.next(line)) {
    Word word{words.size(), {}, lines.number()};
    if (words.empty()) numbered = read_word(line, word);
    if (!numbered) {
      word.text = trimmed(line);
    } else if (!read_word(line, word)) {
      refuse("has no number and word, as the first line does", lines.place(), "a line is: number<TAB>word");
    }
    if (word.text.empty()) refuse("has no word", lines.place(), "a line is a word; numbers of words count lines");
    std::replace_if(word.text.begin(), word.text.end(), data::is_space, '_');
    words.push_back(std::move(word));
  }
  const auto place = [&](const Word& word) { return file.string() + ":" + std::to_string(word.line); };
  std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) { return std::tie(a.number, a.line) < std::tie(b.number, b.line); });
  data::Names names;
  const std::uint64_t first = words.empty() ? 0 : std::min<std::uint64_t>(words.front().number, 1);
  for (const Word& word : words) {
    if (word.number != first + names.size()) {
      const bool twice = word.number < first + names.size();
      refuse("number " + std::to_string(word.number) + (twice ? " is there twice" : " stands after " + std::to_string(first + names.size() - 1)),
             place(word), "each number has one word, without gaps");
    }
    if (names.find(word.text)) {
      const auto& before = words[*names.find(word.text)];
      refuse(data::quote(word.text) + " is there twice, first in line " + std::to_string(before.line), place(word), "each word has one number");
    }
    names.number(word.text);
  }
  if (names.size() == 0) refuse("has no word", file.string(), "is it the right file?");
  return names;
}

}  // namespace shoal::text

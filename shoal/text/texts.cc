#include "shoal/text/texts.h"

#include <algorithm>
#include <string>

#include "shoal/core/error.h"
#include "shoal/data/number.h"

namespace shoal::text {
void read_lines(data::Lines& lines, Tokens& tokens, Gathering& gathering) {
  Texts texts(tokens, gathering);
  for (std::string_view line; lines.next(line);) {
    texts.add(line);
    texts.end();
  }
}

void read_yahoo(data::Lines& lines, Gathering& gathering) {
  for (std::string_view line; lines.next(line);) {
    const char* at = line.data();
    const char* const end = at + line.size();
    const char* name_end = at;
    for (int field = 0;; ++field) {
      at = data::skip_spaces(at, end);
      if (at == end) {
        if (field == 1) refuse("has one field", lines.place(), "a line is: id1 id2 word word ...");
        break;
      }
      const char* const begin = at;
      at = std::find_if(at, end, data::is_space);
      if (field < 2) {
        name_end = at;
      } else {
        gathering.add(std::string_view(begin, at));
      }
    }
    if (name_end != line.data()) gathering.end_document(std::string_view(line.data(), name_end));
  }
}

void read_mallet(data::Lines& lines, Tokens& tokens, Gathering& gathering) {
  Texts texts(tokens, gathering);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const std::size_t label = line.find('\t');
    const std::size_t text = label == std::string_view::npos ? label : line.find('\t', label + 1);
    if (text == std::string_view::npos) refuse("has fewer than 3 fields between tabs", lines.place(), "a line is: name<TAB>label<TAB>text");
    texts.add(line.substr(text + 1));
    texts.end(line.substr(0, label));
  }
}

void read_files(const std::vector<std::filesystem::path>& files, Tokens& tokens, Gathering& gathering) {
  Texts texts(tokens, gathering);
  for (const auto& file : files) {
    data::Lines lines({file});
    for (std::string_view line; lines.next(line);) texts.add(line);
    texts.end(file.string());
  }
}

}  // namespace shoal::text

#include "shoal/data/fields.h"

#include <algorithm>
#include <map>

namespace shoal::data {

std::string_view Field::plain(std::string& room) const {
  if (!doubled) return text;
  room.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    room += text[i];
    if (text[i] == '"') ++i;
  }
  return room;
}

Fields::Fields(std::string_view line, std::string_view delimiter, Quotes quotes)
    : at_(line.data()),
      end_(at_ + line.size()),
      delimiter_(delimiter),
      first_(delimiter[0]),
      other_(first_ == ' ' ? '\t' : first_),
      quotes_(quotes == Quotes::read) {}

bool Fields::next(Field& field) {
  if (at_ == nullptr) return false;
  while (at_ != end_ && (*at_ == ' ' || (first_ == ' ' && *at_ == '\t'))) ++at_;
  if (first_ == ' ' && at_ == end_) return false;
  const char* const begin = at_;
  field.doubled = false;
  if (quotes_ && begin != end_ && *begin == '"') {
    const char* const stop = closing_quote(begin + 1, field.doubled);
    if (stop == end_) {
      open_quote_ = true;
      return false;
    }
    if (ends_field(stop + 1)) {
      field.text = std::string_view(begin + 1, stop);
      move_on(stop);
      return true;
    }
    field.doubled = false;
  }
  const char* stop = move_on(begin);
  while (stop != begin && stop[-1] == ' ') --stop;
  field.text = std::string_view(begin, stop);
  return true;
}

const char* Fields::move_on(const char* at) {
  for (; at != end_; ++at) {
    if ((*at == first_ || *at == other_) && (delimiter_.size() == 1 || std::string_view(at, end_).starts_with(delimiter_))) {
      at_ = at + delimiter_.size();
      return at;
    }
  }
  at_ = nullptr;
  return end_;
}

const char* Fields::closing_quote(const char* at, bool& doubled) const {
  for (;; doubled = true, at += 2) {
    at = std::find(at, end_, '"');
    if (at == end_ || at + 1 == end_ || at[1] != '"') return at;
  }
}

bool Fields::ends_field(const char* at) const {
  if (at != end_ && (*at == first_ || *at == other_)) return true;
  while (at != end_ && *at == ' ') ++at;
  return at == end_ || *at == first_;
}

std::vector<std::string> fields_of(std::string_view line, std::string_view delimiter, Fields::Quotes quotes) {
  std::vector<std::string> fields;
  Fields each(line, delimiter, quotes);
  std::string room;
  for (Field field; each.next(field);) fields.emplace_back(field.plain(room));
  return fields;
}

bool is_most(std::size_t part, std::size_t of) { return 4 * part >= 3 * of; }

Division divide(std::span<const std::string> lines, std::span<const std::string_view> delimiters, std::size_t least, Fields::Quotes quotes) {
  for (const std::string_view delimiter : delimiters) {
    std::map<std::size_t, std::size_t> lines_with;  // so many fields
    for (const auto& line : lines) ++lines_with[fields_of(line, delimiter, quotes).size()];
    const auto usual = std::max_element(lines_with.begin(), lines_with.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (usual != lines_with.end() && usual->first >= least && is_most(usual->second, lines.size())) return {delimiter, usual->first};
  }
  return {};
}

}  // namespace shoal::data

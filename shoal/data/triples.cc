#include "shoal/data/triples.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "shoal/core/error.h"
#include "shoal/data/number.h"

namespace shoal::data {
namespace {

constexpr std::size_t kFirstLines = 32;  // that tell the form
constexpr std::array<const char*, 6> kDelimiters = {"::", "\t", ",", ";", "|", " "};

bool is_blank(std::string_view line) { return skip_spaces(line.data(), line.data() + line.size()) == line.data() + line.size(); }

// Whether this line that `lines` gave is a comment or blank, with nothing else above it in its file. `above`: so it was with the line before.
bool is_above_first(const Lines& lines, std::string_view line, bool& above) {
  if (lines.number() == 1) above = true;
  above = above && (is_blank(line) || line.starts_with('#') || line.starts_with('%'));
  return above;
}

// The fields of a line, one after another.
class Fields {
 public:
  Fields(std::string_view line, std::string_view delimiter)
      : at_(line.data()), end_(at_ + line.size()), delimiter_(delimiter), by_space_(delimiter == " ") {}

  // The next field, without spaces around it and without its quotes; what stood in quotes may lie in `room`. False where there is none, and where
  // a quote is not closed.
  bool next(std::string_view& field, std::string& room) {
    if (at_ == nullptr) return false;
    while (at_ != end_ && (*at_ == ' ' || (by_space_ && *at_ == '\t'))) ++at_;
    if (by_space_ && at_ == end_) return false;
    const char* const begin = at_;
    const bool quoted = begin != end_ && *begin == '"';
    const char* stop = quoted ? unquote(begin, room) : begin;
    open_quote_ = stop == nullptr;
    if (open_quote_) return false;
    while (stop != end_ && !delimits(stop)) ++stop;
    at_ = stop == end_ ? nullptr : stop + delimiter_.size();
    if (quoted) {
      field = room;
      return true;
    }
    while (stop != begin && stop[-1] == ' ') --stop;
    field = std::string_view(begin, stop);
    return true;
  }
  bool open_quote() const { return open_quote_; }

 private:
  bool delimits(const char* at) const {
    if (by_space_) return is_space(*at);
    return *at == delimiter_[0] && (delimiter_.size() == 1 || std::string_view(at, end_).starts_with(delimiter_));
  }
  // Behind the closing quote; none: nullptr. A doubled quote is one (RFC 4180, 2.7).
  const char* unquote(const char* quote, std::string& room) const {
    room.clear();
    for (const char* at = quote + 1;; at += 2) {
      const char* const closing = std::find(at, end_, '"');
      if (closing == end_) return nullptr;
      room.append(at, closing);
      at = closing;
      if (at + 1 == end_ || at[1] != '"') return at + 1;
      room += '"';
    }
  }

  const char *at_, *end_;
  std::string_view delimiter_;
  bool by_space_, open_quote_ = false;
};

std::vector<std::string> fields_of(std::string_view line, std::string_view delimiter) {
  std::vector<std::string> fields;
  Fields each(line, delimiter);
  std::string room;
  for (std::string_view field; each.next(field, room);) fields.emplace_back(field);
  return fields;
}

// Of the lines, the number of fields that most have, and how many have it.
std::pair<std::size_t, std::size_t> usual_fields(std::span<const std::string> lines, std::string_view delimiter) {
  std::map<std::size_t, std::size_t> lines_with;
  for (const auto& line : lines) ++lines_with[fields_of(line, delimiter).size()];
  const auto usual = std::max_element(lines_with.begin(), lines_with.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return *usual;
}

bool is_most(std::size_t part, std::size_t of) { return 4 * part >= 3 * of; }  // a few lines may be broken

bool is_number(std::string_view field) {
  const char* at = field.data();
  double value = 0;
  return scan_real(at, at + field.size(), value) == Scan::fine && at == field.data() + field.size();
}

// No field of a header is a number, and there is a field that is one on most lines below it.
bool begins_with_header(std::span<const std::string> lines, const TripleForm& form) {
  const auto read = [&](const std::string& line) { return fields_of(line, form.delimiter); };
  const auto names = read(lines.front());
  if (std::any_of(names.begin(), names.end(), is_number)) return false;
  for (std::size_t i = 0; i < form.fields && lines.size() > 1; ++i) {
    const auto numbers = std::count_if(lines.begin() + 1, lines.end(), [&](const std::string& line) {
      const auto fields = read(line);
      return i < fields.size() && is_number(fields[i]);
    });
    if (is_most(static_cast<std::size_t>(numbers), lines.size() - 1)) return true;
  }
  return false;
}

std::string shown(const TripleForm& form) { return form.delimiter == " " ? "spaces" : form.delimiter == "\t" ? "tabs" : quote(form.delimiter); }

Fault no_fields(const TripleForm& form, std::string what) {
  return {Reason::fields, std::move(what), std::string("a line is: row, column") + (form.fields > 2 ? ", value" : "") + ", between " + shown(form)};
}

Fault no_value(std::string_view field, Scan scan) {
  if (scan == Scan::not_finite) return {Reason::not_finite, "the value is " + quote(field), "give it a number, or leave the line out"};
  if (scan == Scan::too_large) return {Reason::range, quote(field) + " is beyond a 32-bit floating-point number", "scale the values"};
  return {Reason::number, quote(field) + " is no number", "the third field is the value"};
}

std::vector<std::string> first_lines_of(const std::vector<std::filesystem::path>& files) {
  Lines lines(files);
  std::vector<std::string> first;
  bool above = true;
  for (std::string_view line; first.size() < kFirstLines && lines.next(line);) {
    if (!is_above_first(lines, line, above) && !is_blank(line)) first.emplace_back(line);
  }
  return first;
}

}  // namespace

TripleForm form_of(std::span<const std::string> first_lines, const std::string& where) {
  if (first_lines.empty()) throw Error(Code::invalid_argument, "has no sample", where, "is it the right file?");
  for (const std::size_t least : {3u, 2u}) {  // "New York, 3 5" has two fields in three ways, but never three in the wrong one
    for (const char* delimiter : kDelimiters) {
      const auto [fields, lines] = usual_fields(first_lines, delimiter);
      if (fields < least || !is_most(lines, first_lines.size())) continue;
      TripleForm form{delimiter, static_cast<std::uint32_t>(std::min<std::size_t>(fields, 3)), {}};
      if (begins_with_header(first_lines, form)) form.header = first_lines.front();
      return form;
    }
  }
  throw Error(Code::invalid_argument, "nothing divides the first lines into row, column and value", where,
              "fields stand between tabs, commas, semicolons, '|', '::' or spaces");
}

std::string to_text(const TripleForm& form) {
  std::string text = form.fields > 2 ? "fields" : "two fields and the value 1";
  text += " between " + shown(form);
  if (!form.header.empty()) text += " after the header " + quote(form.header);
  return text;
}

Verdict parse_triple(std::string_view line, const TripleForm& form, Triples& into) {
  if (is_blank(line)) return {};
  Fields fields(line, form.delimiter);
  std::string_view row, column, text;
  std::string row_room, column_room, text_room;
  const bool complete = fields.next(row, row_room) && fields.next(column, column_room) && (form.fields < 3 || fields.next(text, text_room));
  if (fields.open_quote()) return {.fault = no_fields(form, "a quote is not closed")};
  if (!complete) return {.fault = no_fields(form, "has fewer than " + std::to_string(form.fields) + " fields")};
  if (row.empty() || column.empty()) return {.fault = no_fields(form, row.empty() ? "the row has no name" : "the column has no name")};
  float value = 1;
  if (form.fields > 2) {
    const char* at = text.data();
    const char* const end = at + text.size();
    if (const Scan scan = scan_real(at, end, value); scan != Scan::fine || at != end) return {.fault = no_value(text, scan)};
  }
  into.append(into.row_names.number(row), into.column_names.number(column), value);
  into.row_count = into.row_names.size();
  into.column_count = into.column_names.size();
  return {.sample = true};
}

TripleReader::TripleReader(std::vector<std::filesystem::path> files, const ReadOptions& options) : intake_(std::move(files), options) {
  form_ = form_of(first_lines_of(intake_.read.files), intake_.read.files.front().string());
  intake_.read.form = to_text(form_);
}

bool TripleReader::next(Triples& batch, std::size_t most) {
  Read& read = intake_.read;
  batch.clear();
  std::string_view line;
  while (batch.size() < most && intake_.next(line)) {
    if (is_above_first(intake_.lines(), line, above_first_)) continue;
    if (!form_.header.empty() && line == form_.header) continue;  // each file may have it
    Verdict verdict = parse_triple(line, form_, batch);
    const bool sample = verdict.sample;
    if (!intake_.keeps(std::move(verdict)) && sample) batch.resize(batch.size() - 1);
  }
  read.values = read.samples;
  read.rows = batch.row_count;
  read.columns = batch.column_count;
  if (read.samples == 0) throw Error(Code::invalid_argument, "has no sample", read.files.front().string(), "is it the right file?");
  return batch.size() > 0;
}

std::pair<Triples, Read> read_triples(std::vector<std::filesystem::path> files, const ReadOptions& options) {
  TripleReader reader(std::move(files), options);
  Triples triples;
  reader.next(triples, std::numeric_limits<std::size_t>::max());
  return {std::move(triples), reader.read()};
}

}  // namespace shoal::data

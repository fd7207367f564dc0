#include "shoal/data/triples.h"

#include <algorithm>
#include <array>
#include <limits>

#include "shoal/core/error.h"
#include "shoal/data/fields.h"
#include "shoal/data/number.h"

namespace shoal::data {
namespace {

constexpr std::size_t kFirstLines = 32;  // that tell the form
constexpr std::array<std::string_view, 6> kDelimiters = {"::", "\t", ",", ";", "|", " "};

bool is_blank(std::string_view line) { return skip_spaces(line.data(), line.data() + line.size()) == line.data() + line.size(); }

// Whether line `number` of a file is a comment or blank, with nothing else above it. `above`: so it was with the line before.
bool is_above_first(std::uint64_t number, std::string_view line, bool& above) {
  if (number == 1) above = true;
  above = above && (is_blank(line) || line.starts_with('#') || line.starts_with('%'));
  return above;
}

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

// Without comments and blank ones.
std::vector<std::string> first_lines_of(Lines& lines) {
  for (std::size_t most = kFirstLines;; most *= 2) {
    std::vector<std::string> first;
    bool above = true;
    const auto& ahead = lines.ahead(most);
    for (const auto& line : ahead) {
      if (!is_above_first(line.number, line.text, above) && !is_blank(line.text)) first.push_back(line.text);
    }
    if (first.size() >= kFirstLines || ahead.size() < most) return first;
  }
}

}  // namespace

TripleForm form_of(std::span<const std::string> first_lines, const std::string& where) {
  if (first_lines.empty()) throw Error(Code::invalid_argument, "has no sample", where, "is it the right file?");
  for (const std::size_t least : {3u, 2u}) {  // "New York, 3 5" has two fields in three ways, but never three in the wrong one
    const auto [delimiter, fields] = divide(first_lines, kDelimiters, least);
    if (delimiter.empty()) continue;
    TripleForm form{std::string(delimiter), static_cast<std::uint32_t>(std::min<std::size_t>(fields, 3)), {}};
    if (begins_with_header(first_lines, form)) form.header = first_lines.front();
    return form;
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
  Field row, column, last;
  const bool complete = fields.next(row) && fields.next(column) && (form.fields < 3 || fields.next(last));
  if (fields.open_quote()) return Verdict::refused(no_fields(form, "a quote is not closed"));
  if (!complete) return Verdict::refused(no_fields(form, "has fewer than " + std::to_string(form.fields) + " fields"));
  if (row.text.empty()) return Verdict::refused(no_fields(form, "the row has no name"));
  if (column.text.empty()) return Verdict::refused(no_fields(form, "the column has no name"));
  float value = 1;
  if (form.fields > 2) {
    const char* at = last.text.data();
    const char* const end = at + last.text.size();
    if (const Scan scan = scan_real(at, end, value); scan != Scan::fine || at != end) return Verdict::refused(no_value(last.text, scan));
  }
  std::string room;
  const std::uint32_t row_number = into.row_names.number(row.plain(room));
  const std::uint32_t column_number = into.column_names.number(column.plain(room));
  into.append(row_number, column_number, value);
  into.row_count = into.row_names.size();
  into.column_count = into.column_names.size();
  return {.sample = true};
}

TripleReader::TripleReader(std::vector<std::filesystem::path> files, const ReadOptions& options) : intake_(std::move(files), options) {
  const auto& ahead = intake_.lines.ahead(1);
  if (!ahead.empty() && ahead.front().text.starts_with("%%MatrixMarket")) {  // its sizes would pass for a triple
    throw Error(Code::invalid_argument, "is a matrix in MatrixMarket's format", intake_.read.files.front().string(), "read it as one");
  }
  form_ = form_of(first_lines_of(intake_.lines), intake_.read.files.front().string());
  intake_.read.form = to_text(form_);
}

bool TripleReader::next(Triples& batch, std::size_t most) {
  Read& read = intake_.read;
  batch.clear();
  std::string_view line;
  while (batch.size() < most && intake_.next(line)) {
    if (is_above_first(intake_.lines.number(), line, above_first_)) continue;
    if (!form_.header.empty() && line == form_.header) continue;  // each file may have it
    const Verdict verdict = parse_triple(line, form_, batch);
    if (!intake_.keeps(verdict) && verdict.sample) batch.resize(batch.size() - 1);
  }
  read.values = read.samples;
  read.rows = batch.row_count;
  read.columns = batch.column_count;
  intake_.require_samples();
  return batch.size() > 0;
}

std::pair<Triples, Read> read_triples(std::vector<std::filesystem::path> files, const ReadOptions& options) {
  TripleReader reader(std::move(files), options);
  Triples triples;
  reader.next(triples, std::numeric_limits<std::size_t>::max());
  return {std::move(triples), reader.read()};
}

}  // namespace shoal::data

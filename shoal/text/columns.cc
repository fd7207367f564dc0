#include "shoal/text/columns.h"

#include <algorithm>
#include <array>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/data/fields.h"
#include "shoal/data/number.h"

namespace shoal::text {
namespace {

using data::Field;
using data::Fields;
using data::quote;

constexpr std::array<std::string_view, 1> kTab = {"\t"};
constexpr std::array<std::string_view, 3> kDelimiters = {",", ";", "|"};

std::string shown(std::string_view delimiter) { return delimiter == "\t" ? "tabs" : quote(delimiter); }

using Table = std::vector<std::vector<std::string>>;  // fields of the first records

Table table_of(const std::vector<std::string>& records, const data::Division& division) {
  Table table;
  for (const auto& record : records) {
    table.push_back(data::fields_of(record, division.delimiter));
    if (table.back().size() != division.fields && division.delimiter == kTab.front()) {  // a quote is not closed
      table.back() = data::fields_of(record, division.delimiter, Fields::Quotes::ignore);
    }
  }
  return table;
}

// The column with most letters; numbers have none.
std::size_t column_of_text(const Table& table, std::size_t columns) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80; };
  std::vector<std::ptrdiff_t> letters(columns);
  for (const auto& record : table) {
    for (std::size_t i = 0; i < std::min(columns, record.size()); ++i) letters[i] += std::count_if(record[i].begin(), record[i].end(), is_letter);
  }
  return static_cast<std::size_t>(std::max_element(letters.begin(), letters.end()) - letters.begin());
}

bool is_number(const std::string& field) {
  double value = 0;
  const char* at = field.data();
  return data::scan_real(at, at + field.size(), value) == data::Scan::fine && at == field.data() + field.size();
}

// In some column a field that is one word and no number stands above such as are mostly numbers or, in the text's, mostly several words.
bool begins_with_header(const Table& table, std::size_t text) {
  const auto is_text = [](const std::string& field) { return field.find(' ') != std::string::npos; };
  const auto& first = table.front();
  if (text >= first.size() || table.size() < 2 || std::any_of(first.begin(), first.end(), is_number) || is_text(first[text])) return false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto differs = [&](const auto& record) { return i < record.size() && (is_number(record[i]) || (i == text && is_text(record[i]))); };
    const auto different = std::count_if(table.begin() + 1, table.end(), differs);
    if (data::is_most(static_cast<std::size_t>(different), table.size() - 1)) return true;
  }
  return false;
}

// The fields of a record in quotes that is no CSV after all: a tab divides, and a quote is a quote.
bool ignores_open_quotes(const Columns& columns) { return columns.delimiter == "\t"; }

struct Record {
  Field text, name;
  bool open_quote = false, complete = false;
};

Record split(std::string_view line, const Columns& columns, Fields::Quotes quotes) {
  Record record;
  Fields fields(line, columns.delimiter, quotes);
  const std::size_t last = std::max(columns.text, columns.name.value_or(0));
  Field field;
  std::size_t at = 0;
  for (; at <= last && fields.next(field); ++at) {
    if (at == columns.text) record.text = field;
    if (at == columns.name) record.name = field;
  }
  record.complete = at > last;
  while (fields.next(field)) {
  }
  record.open_quote = fields.open_quote();
  return record;
}

// A quote that is not doubled: only such a one closes a field.
bool has_single_quote(std::string_view line) {
  for (std::size_t at = 0; (at = line.find('"', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_not_of('"', at), line.size());
    if ((end - at) % 2 == 1) return true;
    at = end;
  }
  return false;
}

// Lines put together where a quote is open at their end. The last record may be cut short, and is left out then.
std::vector<std::string> records_of(std::span<const std::string> lines) {
  std::vector<std::string> records;
  bool open = false;
  for (const std::string& line : lines) {
    if (open) {
      records.back() += "\n" + line;
    } else {
      records.push_back(line);
    }
    open = open != (std::count(line.begin(), line.end(), '"') % 2 == 1);
  }
  if (open && records.size() > 1) records.pop_back();
  return records;
}

}  // namespace

Columns columns_of(std::span<const std::string> first_lines, const std::string& column, const std::string& where) {
  std::vector<std::string> records(first_lines.begin(), first_lines.end());
  data::Division division = data::divide(records, kTab, 2, Fields::Quotes::ignore);
  if (division.delimiter.empty()) {
    records = records_of(first_lines);
    division = data::divide(records, kDelimiters, 2);
  }
  if (division.delimiter.empty() && !column.empty()) division = {kDelimiters.front(), 1};
  if (division.delimiter.empty() || records.empty()) {
    refuse("nothing divides the first lines into columns", where, "fields stand between tabs, commas, semicolons or '|'");
  }
  const Table table = table_of(records, division);
  Columns columns{.delimiter = std::string(division.delimiter)};
  std::uint64_t number = 0;
  const char* at = column.data();
  const char* const end = at + column.size();
  const auto& first = table.front();
  if (const auto named = std::find(first.begin(), first.end(), column); !column.empty() && named != first.end()) {
    columns.text = static_cast<std::size_t>(named - first.begin());
    columns.header = true;
  } else if (data::scan_index(at, end, number) == data::Scan::fine && at == end) {
    if (number == 0 || number > division.fields)
      refuse("there is no column " + column, where, "columns count from 1 to " + std::to_string(division.fields));
    columns.text = number - 1;
  } else if (!column.empty()) {
    std::string known;
    for (const auto& name : first) known += (known.empty() ? "" : ", ") + quote(name);
    refuse("there is no column " + quote(column), where, "the first line has " + known);
  } else {
    columns.text = column_of_text(table, division.fields);
  }
  columns.header = columns.header || begins_with_header(table, columns.text);
  if (columns.text > 0) columns.name = 0;
  if (columns.header) columns.text_called = first[columns.text];
  return columns;
}

std::string to_text(const Columns& columns) {
  return "column " + (columns.header ? quote(columns.text_called) : std::to_string(columns.text + 1)) + " between " + shown(columns.delimiter);
}

void read_columns(data::Lines& lines, const Columns& columns, Texts& texts) {
  std::string whole, text_room, name_room;
  std::string_view line;
  while (lines.next(line)) {
    if (data::skip_spaces(line.data(), line.data() + line.size()) == line.data() + line.size()) continue;
    const bool at_head = lines.number() == 1;
    Record record = split(line, columns, Fields::Quotes::read);
    if (record.open_quote && ignores_open_quotes(columns)) {
      record = split(line, columns, Fields::Quotes::ignore);
    } else if (record.open_quote) {
      whole = line;
      const std::string place = lines.place();
      while (record.open_quote) {
        if (!lines.next(line) || lines.number() == 1) refuse("a quote is not closed", place, "a quote within quotes is doubled");
        whole.append(1, '\n').append(line);
        if (whole.size() > data::Lines::kLongest) refuse("the record is longer than 64 MiB", place, "is a quote not closed?");
        if (has_single_quote(line)) record = split(whole, columns, Fields::Quotes::read);
      }
    }
    if (!record.complete)
      refuse("has no column " + std::to_string(columns.text + 1), lines.place(), "fields stand between " + shown(columns.delimiter));
    const std::string_view name = record.name.plain(name_room), text = record.text.plain(text_room);
    if (columns.header && at_head && text == columns.text_called) continue;  // each file may have one
    texts.add(text);
    texts.end(name);
  }
}

}  // namespace shoal::text

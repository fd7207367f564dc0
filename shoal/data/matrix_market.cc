#include "shoal/data/matrix_market.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "shoal/core/error.h"
#include "shoal/data/number.h"

namespace shoal::data {
namespace {

using Format = MatrixMarket::Format;
using Entries = MatrixMarket::Field;
using Symmetry = MatrixMarket::Symmetry;

constexpr std::uint64_t kMostSize = std::numeric_limits<std::uint32_t>::max();
constexpr const char* kBanner = "the first line is: %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric";

// The next word of a line; empty at its end.
std::string_view next_word(const char*& at, const char* end) {
  const char* const begin = skip_spaces(at, end);
  at = std::find_if(begin, end, is_space);
  return {begin, at};
}

bool whole_number(const char*& at, const char* end, std::uint64_t& number) {
  at = skip_spaces(at, end);
  return scan_index(at, end, number) == Scan::fine && (at == end || is_space(*at));
}

bool real_number(const char*& at, const char* end, float& number, Scan& scan) {
  at = skip_spaces(at, end);
  scan = scan_real(at, end, number);
  return scan == Scan::fine && (at == end || is_space(*at));
}

bool at_end(const char* at, const char* end) { return skip_spaces(at, end) == end; }

Verdict refused(Reason reason, std::string what, std::string hint) { return Verdict::refused({reason, std::move(what), std::move(hint)}); }

// Where entry `entry` of an array stands: column after column, of a symmetric matrix from the diagonal down, of a skew-symmetric one from below it.
std::pair<std::uint64_t, std::uint64_t> place_in_array(const MatrixMarket& matrix, std::uint64_t entry) {
  if (matrix.symmetry == Symmetry::general) return {entry % matrix.rows, entry / matrix.rows};
  const std::uint64_t below = matrix.symmetry == Symmetry::skew_symmetric ? 1 : 0;
  // Column c begins at entry c n - c (c - 1) / 2, n = rows - below; the last column that begins at or before `entry`.
  const std::uint64_t n = matrix.rows - below;
  const auto begin_of = [&](std::uint64_t c) { return c * n - c * (c - 1) / 2; };
  std::uint64_t low = 0, high = n;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (begin_of(middle) <= entry ? low : high) = middle;
  }
  return {low + below + entry - begin_of(low), low};
}

Verdict no_entry(std::string_view line, const MatrixMarket& matrix, Scan scan) {
  if (scan == Scan::not_finite) return refused(Reason::not_finite, quote(line) + " is not finite", "give it a number");
  if (scan == Scan::too_large) return refused(Reason::range, quote(line) + " is beyond a 32-bit floating-point number", "scale the matrix");
  const char* form = matrix.format == Format::array ? "value" : matrix.field == Entries::pattern ? "row column" : "row column value";
  return refused(Reason::fields, quote(line) + " is no entry", std::string("a line is: ") + form);
}

}  // namespace

Verdict parse_banner(std::string_view line, MatrixMarket& matrix) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const char* at = lower.data();
  const char* const end = at + lower.size();
  const auto choose = [&](auto& into, const auto& choices) {
    const std::string_view said = next_word(at, end);
    for (const auto& [text, value] : choices) {
      if (said == text) {
        into = value;
        return true;
      }
    }
    return false;
  };
  const std::array<std::pair<const char*, Format>, 2> formats = {{{"coordinate", Format::coordinate}, {"array", Format::array}}};
  const std::array<std::pair<const char*, Entries>, 4> fields = {
      {{"real", Entries::real}, {"double", Entries::real}, {"integer", Entries::integer}, {"pattern", Entries::pattern}}};
  const std::array<std::pair<const char*, Symmetry>, 3> symmetries = {
      {{"general", Symmetry::general}, {"symmetric", Symmetry::symmetric}, {"skew-symmetric", Symmetry::skew_symmetric}}};
  const bool fine = next_word(at, end) == "%%matrixmarket" && next_word(at, end) == "matrix" && choose(matrix.format, formats) &&
                    choose(matrix.field, fields) && choose(matrix.symmetry, symmetries) && at_end(at, end);
  if (!fine) return refused(Reason::fields, quote(line) + " begins no matrix that can be read", kBanner);
  if (matrix.field == Entries::pattern && (matrix.format == Format::array || matrix.symmetry == Symmetry::skew_symmetric)) {
    return refused(Reason::fields, "a pattern is neither an array nor skew-symmetric", kBanner);
  }
  return {};
}

Verdict parse_sizes(std::string_view line, MatrixMarket& matrix) {
  const char* at = line.data();
  const char* const end = at + line.size();
  std::uint64_t rows = 0, columns = 0;
  const bool array = matrix.format == Format::array;
  if (!whole_number(at, end, rows) || !whole_number(at, end, columns) || (!array && !whole_number(at, end, matrix.entries)) || !at_end(at, end)) {
    return refused(Reason::fields, quote(line) + " says no sizes", array ? "the line is: rows columns" : "the line is: rows columns entries");
  }
  if (rows > kMostSize || columns > kMostSize)
    return refused(Reason::range, quote(line) + ": the matrix is too large", "at most 4294967295 rows and columns");
  if (matrix.symmetry != Symmetry::general && rows != columns)
    return refused(Reason::range, "a symmetric matrix is square", "rows and columns differ here");
  matrix.rows = static_cast<std::uint32_t>(rows);
  matrix.columns = static_cast<std::uint32_t>(columns);
  if (array) {
    const std::uint64_t whole = rows * columns;  // below 2^64
    matrix.entries = matrix.symmetry == Symmetry::general     ? whole
                     : matrix.symmetry == Symmetry::symmetric ? (whole - rows) / 2 + rows
                                                              : (whole - rows) / 2;
  }
  return {};
}

Verdict parse_entry(std::string_view line, const MatrixMarket& matrix, std::uint64_t entry, Triples& into) {
  if (entry >= matrix.entries)
    return refused(Reason::fields, "more entries than the " + std::to_string(matrix.entries) + " of the sizes", "correct the sizes");
  const char* at = line.data();
  const char* const end = at + line.size();
  std::uint64_t row = 0, column = 0;
  if (matrix.format == Format::array) {
    std::tie(row, column) = place_in_array(matrix, entry);
  } else {
    if (!whole_number(at, end, row) || !whole_number(at, end, column)) return no_entry(line, matrix, Scan::no_number);
    if (row == 0 || column == 0 || row > matrix.rows || column > matrix.columns) {
      return refused(Reason::range,
                     quote(line) + " is outside of a matrix of " + std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns),
                     "rows and columns count from 1");
    }
    --row;
    --column;
  }
  float value = 1;
  Scan scan = Scan::fine;
  if ((matrix.field != Entries::pattern && !real_number(at, end, value, scan)) || !at_end(at, end)) return no_entry(line, matrix, scan);
  if (matrix.field == Entries::integer && value != std::floor(value))
    return refused(Reason::number, quote(line) + " has no integer", "say real in the first line");
  if (matrix.symmetry != Symmetry::general && row < column) {
    return refused(Reason::order, quote(line) + " is above the diagonal", "of a symmetric matrix a file has the lower triangle");
  }
  if (matrix.symmetry == Symmetry::skew_symmetric && row == column) {
    return refused(Reason::range, quote(line) + " is on the diagonal of a skew-symmetric matrix", "it is zero there; leave it out");
  }
  const auto append = [&](std::uint64_t r, std::uint64_t c, float v) {
    into.append(static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(c), v);
  };
  append(row, column, value);
  if (matrix.symmetry != Symmetry::general && row != column) append(column, row, matrix.symmetry == Symmetry::symmetric ? value : -value);
  return {.sample = true};
}

MatrixMarketReader::MatrixMarketReader(std::filesystem::path file, const ReadOptions& options) : intake_({std::move(file)}, options) {
  const std::string name = intake_.read.files.front().string();
  const auto refuse = [&](const Verdict& verdict) {  // whatever the options: nothing can be read without these lines
    if (verdict.fault) throw Error(Code::invalid_argument, verdict.fault->what, intake_.lines.place(), verdict.fault->hint);
  };
  std::string_view line;
  if (!intake_.next(line)) throw Error(Code::invalid_argument, "is empty", name, kBanner);
  refuse(parse_banner(line, matrix_));
  if (!next_line(line)) throw Error(Code::invalid_argument, "ends before its sizes", name, "was it cut short?");
  refuse(parse_sizes(line, matrix_));
  intake_.read.rows = matrix_.rows;
  intake_.read.columns = matrix_.columns;
}

bool MatrixMarketReader::next_line(std::string_view& line) {
  while (intake_.next(line)) {
    if (!line.starts_with('%') && !at_end(line.data(), line.data() + line.size())) return true;
  }
  return false;
}

bool MatrixMarketReader::next(Triples& batch, std::size_t most) {
  Read& read = intake_.read;
  batch.clear();
  batch.row_count = matrix_.rows;
  batch.column_count = matrix_.columns;
  std::string_view line;
  for (std::size_t kept = 0; kept < most;) {
    if (!next_line(line)) {
      if (seen_ == matrix_.entries) break;
      throw Error(Code::invalid_argument, "ends after " + std::to_string(seen_) + " of " + std::to_string(matrix_.entries) + " entries",
                  intake_.lines.place(), "was it cut short?");
    }
    const std::size_t before = batch.size();
    const Verdict verdict = parse_entry(line, matrix_, seen_, batch);
    seen_ += seen_ < matrix_.entries ? 1 : 0;
    read.values += batch.size() - before;
    if (intake_.keeps(verdict)) {
      ++kept;
    } else {
      batch.resize(before);
    }
  }
  return batch.size() > 0;
}

std::pair<Triples, Read> read_matrix_market(std::filesystem::path file, const ReadOptions& options) {
  MatrixMarketReader reader(std::move(file), options);
  Triples triples;
  reader.next(triples, std::numeric_limits<std::size_t>::max());
  return {std::move(triples), reader.read()};
}

}  // namespace shoal::data

// Single numbers of a matrix: (row, column, value), such as (user, item, rating) or an edge of a graph, a line each, from text whose form the first
// lines tell: fields between "::", tabs, commas, semicolons, "|" or spaces, with a header line or without, in quotes or not. Rows and columns
// are named by any text; numbers stand for the names. A third field is the value, without it the value is 1; further fields are not read.
//
//   auto [ratings, read] = read_triples({"ratings.dat"});
//   puts(sentence(read, {"ratings", "users", "items"}).c_str());
#pragma once

#include <cassert>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/data/names.h"
#include "shoal/data/read.h"

namespace shoal::data {

// Consecutive triples, valid while the whole is there and unchanged.
struct TripleSlice {
  std::span<const std::uint32_t> rows, columns;
  std::span<const float> values;
  std::size_t size() const { return values.size(); }
};

struct Triples {
  std::vector<std::uint32_t> rows, columns;  // each from 0
  std::vector<float> values;
  Names row_names, column_names;                   // empty where the data has numbers for names (matrix_market.h)
  std::uint32_t row_count = 0, column_count = 0;  // of the data, not only of these triples

  std::size_t size() const { return values.size(); }
  TripleSlice slice(std::size_t begin, std::size_t count) const {
    assert(begin + count <= size());
    return {std::span(rows).subspan(begin, count), std::span(columns).subspan(begin, count), std::span(values).subspan(begin, count)};
  }
  void append(std::uint32_t row, std::uint32_t column, float value) {
    rows.push_back(row);
    columns.push_back(column);
    values.push_back(value);
  }
  void append(const TripleSlice& triples) {
    rows.insert(rows.end(), triples.rows.begin(), triples.rows.end());
    columns.insert(columns.end(), triples.columns.begin(), triples.columns.end());
    values.insert(values.end(), triples.values.begin(), triples.values.end());
  }
  void resize(std::size_t count) {
    rows.resize(count);
    columns.resize(count);
    values.resize(count);
  }
  void clear() { resize(0); }  // the names stay
};

struct TripleForm {
  std::string delimiter;  // " " is any run of spaces and tabs
  std::uint32_t fields = 3;  // 2: there is no value
  std::string header;     // the header line; empty where there is none
};

// The form of the data whose first lines these are, without comments and blank lines; `where` for the error. Throws Error{invalid_argument} where
// there is none, and where nothing divides most of them into two fields or more.
TripleForm form_of(std::span<const std::string> first_lines, const std::string& where);
std::string to_text(const TripleForm& form);  // "fields between ',' after the header 'user,item,rating'"

// Appends the triple of a line to `into`. Pure but for that.
Verdict parse_triple(std::string_view line, const TripleForm& form, Triples& into);

class TripleReader {
 public:
  // The first lines tell the form of all files. Lines that begin with "#" or "%" are comments above a file's first other line.
  explicit TripleReader(std::vector<std::filesystem::path> files, const ReadOptions& options = {});

  // Puts this member's next triples into `batch`, at most so many, in place of what it had; its names stay and grow, so give the same batch each
  // time. False when none is left. Throws as LibsvmReader::next.
  bool next(Triples& batch, std::size_t most);
  const Read& read() const { return intake_.read; }  // so far

 private:
  Intake intake_;
  TripleForm form_;
  bool above_first_ = true;  // line of the file that is no comment
};

std::pair<Triples, Read> read_triples(std::vector<std::filesystem::path> files, const ReadOptions& options = {});

}  // namespace shoal::data

// Samples as learners over rows take them: each member has a share of the rows, everybody knows how many there are, and their classes. The formats of
// data/samples.h.
// Every member reads all files, so that all agree without a word on classes, columns and who is held out. Values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "shoal/data/row_store.h"
#include "shoal/data/read.h"
#include "shoal/learn/source.h"

namespace shoal::learn {

inline constexpr std::size_t kMostClasses = 10'000;
inline constexpr std::uint32_t kRowsAtOnce = 1000;  // whose columns learners have in memory together
// What a label is: a class, each different number one; or nothing that is learnt from.
enum class Labels : std::uint8_t { classes, unused };

struct LabelledRows {
  std::uint32_t member = 0, members = 1;
  data::RowStore own, own_held_out;       // this member's; labels are places in `classes` if there are any
  std::vector<std::uint32_t> numbers;     // of own rows among the rows of all members, ascending
  data::SparseRows first;                 // the first rows of all that are learnt from, the same on all members
  std::vector<double> classes;            // labels as the data has them, ascending
  std::uint32_t columns = 0;              // of all members, as the rest
  std::uint32_t count = 0, held_out = 0;  // rows
  float largest = 0;                      // absolute value of the rows that are learnt from
  std::uint64_t digest = 0;               // of all numbers, in their order
  std::vector<data::Read> read;           // of the files, and of the test files if there are any
};

// Throws Error{invalid_argument} as SampleReader does, and where nothing is left to learn from. Of classes: for more than kMostClasses, for one only, and for a
// test label that no row to learn from has.
LabelledRows read_labelled_rows(const Source& source, std::uint32_t member = 0, std::uint32_t members = 1, Labels labels = Labels::classes);
// The same of rows that are in memory, all of them on all members; none is held out.
LabelledRows deal_rows(const data::SparseRows& all, std::uint32_t member = 0, std::uint32_t members = 1, Labels labels = Labels::classes);

}  // namespace shoal::learn

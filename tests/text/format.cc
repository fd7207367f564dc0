// Goal: formats are told by their first lines, and what looks like none of them is plain text. Oracle: by hand.
#include "shoal/text/format.h"

#include <gtest/gtest.h>

#include <vector>

#include "shoal/core/error.h"

namespace shoal::text {
namespace {

TEST(Formats, are_told_by_their_first_lines) {
  struct Case {
    Format format;
    std::vector<std::string> lines;
    const char* file = "a";
  };
  for (const Case& one : std::vector<Case>{
           {Format::uci, {"3", "10", "5", "1 1 1"}},
           {Format::uci, {"3", "10", "0"}},
           {Format::lda_c, {"2 0:1 5:2", "1 3:1"}},
           {Format::libsvm, {"7 1:1 5:2", "8 3:1"}},
           {Format::lightlda, {"7 0:1 5:2", "8 3:1"}},
           {Format::lightlda, {"7\t1:1 5:2", "8\t3:1"}},
           {Format::matrix_market, {"%%MatrixMarket matrix coordinate integer general"}},
           {Format::mallet_state, {"#doc source pos typeindex type topic"}},
           {Format::column, {"a,b", "1,text of it"}, "a.csv.gz"},
           {Format::column, {"a\tb", "c\td"}},
           {Format::lines, {"a\tb", "c d"}},
           {Format::lines, {"plain text", "at 10:30 we met"}},
           {Format::lines, {"1", "2", "three"}},
           {Format::lines, {"1995 was the year", "2 10:30"}},
           {Format::lines, {"42", "43"}},
           {Format::lines, {}},
       }) {
    EXPECT_EQ(name(tell_format(one.lines, one.file)), name(one.format)) << (one.lines.empty() ? "" : one.lines.front());
  }
}

TEST(Formats, have_names) {
  for (const Format format : {Format::automatic, Format::lda_c, Format::matrix_market}) EXPECT_EQ(parse_format(name(format)), format);
  try {
    parse_format("xml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "'xml' is no format (there are auto, lines, column, files, yahoo, mallet, mallet-state, uci, lda-c, libsvm, lightlda, matrix-market)");
  }
}

}  // namespace
}  // namespace shoal::text

// Goal: fields are what stands between delimiters, in quotes or not, and lines tell their delimiter. Oracle: by hand; fields made up, written and
// read again.
#include "shoal/data/fields.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

namespace shoal::data {
namespace {

using testing::ElementsAre;

TEST(FieldsOfALine, stand_between_delimiters) {
  EXPECT_THAT(fields_of("a, b ,,c", ","), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(fields_of("a::b:c::", "::"), ElementsAre("a", "b:c", ""));
  EXPECT_THAT(fields_of("  a \t b ", " "), ElementsAre("a", "b"));
  EXPECT_THAT(fields_of("", ","), ElementsAre(""));
}

TEST(FieldsOfALine, in_quotes_have_anything_in_them) {
  EXPECT_THAT(fields_of(R"("a,b", "say ""no""",c)", ","), ElementsAre("a,b", R"(say "no")", "c"));
  EXPECT_THAT(fields_of("\"two\nlines\",x", ","), ElementsAre("two\nlines", "x"));
  EXPECT_THAT(fields_of(R"("in" quotes,5" disk)", ","), ElementsAre(R"("in" quotes)", R"(5" disk)")) << "a quote that is none";
  EXPECT_THAT(fields_of(R"("a,b",c)", ",", Fields::Quotes::ignore), ElementsAre("\"a", "b\"", "c"));
}

TEST(FieldsOfALine, end_where_a_quote_is_not_closed) {
  Fields fields("a,\"b,c", ",");
  Field field;
  EXPECT_TRUE(fields.next(field));
  EXPECT_FALSE(fields.open_quote());
  EXPECT_FALSE(fields.next(field));
  EXPECT_TRUE(fields.open_quote());
}

TEST(FieldsOfALine, that_are_written_are_read_again) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> fields(1 + random() % 5);
    std::string line;
    for (auto& field : fields) {
      for (std::size_t i = random() % 8; i > 0; --i) field += "ab\",\n "[random() % 6];
      line += line.empty() && &field == &fields.front() ? "\"" : ",\"";
      for (const char c : field) line.append(c == '"' ? 2 : 1, c);
      line += "\"";
    }
    ASSERT_EQ(fields_of(line, ","), fields) << line;
  }
}

TEST(FieldsOfALine, tell_their_delimiter) {
  constexpr std::array<std::string_view, 3> kDelimiters = {"\t", ",", ";"};
  const auto told = [&](std::vector<std::string> lines, std::size_t least = 2) { return divide(lines, kDelimiters, least); };
  EXPECT_EQ(told({"a,b;c", "d,e"}).delimiter, ",");
  EXPECT_EQ(told({"a\tb,c", "d\te,f"}).delimiter, "\t") << "the first that does";
  EXPECT_EQ(told({"a,b", "c,d", "e,f", "g"}).fields, 2u) << "a few lines may be broken";
  EXPECT_EQ(told({"a,b", "c"}).delimiter, "");
  EXPECT_EQ(told({"a;b;c", "d;e;f"}, 3).fields, 3u);
  EXPECT_EQ(told({"a;b", "d;e"}, 3).delimiter, "");
  EXPECT_EQ(told({}).delimiter, "");
}

}  // namespace
}  // namespace shoal::data

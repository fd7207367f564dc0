// Goal: triples are read from whatever divides their fields, names keep their numbers, and mistakes are lines that say where and what to do.
// Oracle: triples written out by hand.
#include "shoal/data/triples.h"

#include <random>

#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;

using Named = std::vector<std::string>;  // "row column value"

Named named(const Triples& triples) {
  Named all;
  for (std::size_t i = 0; i < triples.size(); ++i) {
    char value[32];
    std::snprintf(value, sizeof value, "%g", static_cast<double>(triples.values[i]));
    all.push_back(std::string(triples.row_names[triples.rows[i]]) + " " + std::string(triples.column_names[triples.columns[i]]) + " " + value);
  }
  return all;
}

class TriplesTest : public Files {
 protected:
  Triples read(std::string_view text) const { return read_triples({file("a", text)}).first; }
  std::string form(std::string_view text) const { return read_triples({file("a", text)}).second.form; }
  std::string refused(std::string_view text) const {
    return refusal([&] { read(text); });
  }
};

TEST_F(TriplesTest, fields_are_told_from_what_divides_them) {
  const Named expected = {"1 1193 5", "1 661 3", "2 1193 4.5"};
  for (const auto& [by, shown] : std::vector<std::pair<std::string, std::string>>{
           {"::", "'::'"}, {"\t", "tabs"}, {",", "','"}, {";", "';'"}, {"|", "'|'"}, {" ", "spaces"}, {"  ", "spaces"}, {", ", "','"}}) {
    const std::string text =
        "1" + by + "1193" + by + "5" + by + "978300760\n1" + by + "661" + by + "3" + by + "978302109\n2" + by + "1193" + by + "4.5" + by + "1\n";
    EXPECT_EQ(named(read(text)), expected) << by;
    EXPECT_EQ(form(text), "fields between " + shown);
  }
  EXPECT_EQ(named(read("1 \t 1193\t5\n")), Named{"1 1193 5"});
}

TEST_F(TriplesTest, a_header_is_told_from_numbers_below_it) {
  const std::string rows = "1,10,5\n2,11,4\n";
  EXPECT_EQ(form("user,item,rating\n" + rows), "fields between ',' after the header 'user,item,rating'");
  EXPECT_EQ(named(read("user,item,rating\n" + rows)), (Named{"1 10 5", "2 11 4"}));
  EXPECT_EQ(form(rows), "fields between ','");
  EXPECT_EQ(form("ann,ten,5\nbob,two,4\n"), "fields between ','");
  EXPECT_EQ(form("who,what,stars\nann,ten,5\nbob,two,4\n"), "fields between ',' after the header 'who,what,stars'");
  EXPECT_EQ(form("from\tto\n1\t2\n3\t4\n"), "two fields and the value 1 between tabs after the header 'from?to'");
  EXPECT_EQ(form("ann\tbob\nbob\tcarl\n"), "two fields and the value 1 between tabs");
  EXPECT_EQ(refused("user,item,rating\n"), "a:1: 'rating' is no number (the third field is the value)") << "one line is no header";
}

TEST_F(TriplesTest, every_file_may_have_its_header) {
  const auto [triples, read] = read_triples({file("a", "u,i,r\n1,10,5\n"), file("b", "u,i,r\n2,10,4\n"), file("c", "3,11,3\n")});
  EXPECT_EQ(named(triples), (Named{"1 10 5", "2 10 4", "3 11 3"}));
  EXPECT_EQ(sentence(read, {"ratings", "users", "items"}),
            "read 3 ratings of 3 users and 2 items from a and 2 more files, fields between ',' after the header 'u,i,r'; 0 lines skipped");
}

TEST_F(TriplesTest, comments_stand_above_the_first_triple) {
  EXPECT_EQ(named(read("# src\tdst\tn\n% of 2020\n\n0\t1\t5\n#1\t1\t2\n")), (Named{"0 1 5", "#1 1 2"}));
  EXPECT_EQ(named(read_triples({file("a", "0 1 5\n"), file("b", "# more\n2 1 3\n")}).first), (Named{"0 1 5", "2 1 3"}));
}

TEST_F(TriplesTest, a_pipe_is_read_once) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = std::string("# comment\n") + "u i r\n1 2 3\n4 5 6\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  EXPECT_EQ(named(read_triples({"/dev/fd/" + std::to_string(ends[0])}).first), (Named{"1 2 3", "4 5 6"}));
  ::close(ends[0]);
}

TEST_F(TriplesTest, many_comments_hide_no_form) {
  std::string comments;
  for (int i = 0; i < 1000; ++i) comments += "# one, two, three, four\n\n";
  EXPECT_EQ(form(comments + "1 2 3\n"), "fields between spaces");
}

TEST_F(TriplesTest, names_have_numbers_in_their_order) {
  const auto triples = read("b,x,1\na,y,2\nb,y,3\n");
  EXPECT_EQ(triples.rows, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(triples.columns, (std::vector<std::uint32_t>{0, 1, 1}));
  EXPECT_EQ(triples.row_count, 2u);
  EXPECT_EQ(triples.column_names[1], "y");
  EXPECT_EQ(triples.row_names.find("a"), 1u);
}

TEST_F(TriplesTest, names_may_stand_in_quotes) {
  EXPECT_EQ(named(read("\"ann\",\"Seven, the film\",\"5\"\n\"bob\" , \"the \"\"best\"\"\", 4\n\"\"\"\",x,1\n")),
            (Named{"ann Seven, the film 5", "bob the \"best\" 4", "\" x 1"}));
  EXPECT_EQ(named(read("\"new york\" x 5\n\"\ty\" x 5\n")), (Named{"new york x 5", "\ty x 5"}));
  EXPECT_EQ(refused("a,b,1\nb,b,1\nc,b,1\na,\"b,1\n"), "a:4: a quote is not closed (a line is: row, column, value, between ',')");
}

TEST_F(TriplesTest, lines_may_end_as_on_any_system) { EXPECT_EQ(named(read("\xEF\xBB\xBFu,i,r\r\n1,2,3\r\n\r\n4,5,6")), (Named{"1 2 3", "4 5 6"})); }

TEST_F(TriplesTest, packed_is_as_plain) {
  std::mt19937_64 random(2);
  std::string text = "user::item::rating\n";
  for (int i = 0; i < 50'000; ++i)
    text += std::to_string(random() % 900) + "::" + std::to_string(random() % 400) + "::" + std::to_string(random() % 5) + "::9\n";
  const auto plain = named(read(text));
  ASSERT_EQ(plain.size(), 50'000u);
  for (const auto& [name, pack] : kPackers) EXPECT_TRUE(named(read(pack(text))) == plain) << name;
}

TEST_F(TriplesTest, mistakes_are_named_with_their_place) {
  const std::string line = "a line is: row, column, value, between ','";
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"1,2", "has fewer than 3 fields (" + line + ")"},
           {",2,3", "the row has no name (" + line + ")"},
           {"1, ,3", "the column has no name (" + line + ")"},
           {"1,2,", "'' is no number (the third field is the value)"},
           {"1,2,NA", "'NA' is no number (the third field is the value)"},
           {"1,2,3x", "'3x' is no number (the third field is the value)"},
           {"1,2,nan", "the value is 'nan' (give it a number, or leave the line out)"},
           {"1,2,-Infinity", "the value is '-Infinity' (give it a number, or leave the line out)"},
           {"1,2,1e40", "'1e40' is beyond a 32-bit floating-point number (scale the values)"},
       }) {
    EXPECT_EQ(refused("1,2,3\n1,3,3\n2,2,3\n" + text + "\n"), "a:4: " + said);
  }
  for (const char* text : {"", "\n \n", "# only comments\n"}) EXPECT_EQ(refused(text), "a: has no sample (is it the right file?)");
  EXPECT_EQ(refused("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 5\n"), "a: is a matrix in MatrixMarket's format (read it as one)");
  EXPECT_EQ(refused("one\ntwo\nthree\n"),
            "a: nothing divides the first lines into row, column and value (fields stand between tabs, commas, semicolons, '|', '::' or spaces)");
}

TEST_F(TriplesTest, a_faulty_line_leaves_no_names) {
  const auto [triples, read] = read_triples({file("a", "1,2,3\n7,8,x\n1,3,3\n2,2,3\n9\n")}, {.skip_faulty = true});
  EXPECT_EQ(named(triples), (Named{"1 2 3", "1 3 3", "2 2 3"}));
  EXPECT_EQ(triples.row_names.find("7"), std::nullopt);
  EXPECT_EQ(triples.column_names.find("8"), std::nullopt);
  EXPECT_EQ(without_folder(sentence(read)),
            "read 3 samples of 2 rows and 2 columns from a, fields between ','; 2 lines skipped (1 no number, 1 fields; the first: "
            "a:2: 'x' is no number)");
}

// All members give all names the same numbers, and together have each triple once.
TEST_F(TriplesTest, shares_are_the_whole) {
  std::string text;
  for (int i = 0; i < 101; ++i) text += "u" + std::to_string(i * i % 17) + "\ti" + std::to_string(i) + "\t" + std::to_string(i) + "\n";
  const auto path = file("a", text);
  const auto whole = named(read_triples({path}).first);
  for (const std::uint32_t members : {2u, 3u, 8u}) {
    Named together(whole.size());
    for (std::uint32_t member = 0; member < members; ++member) {
      const auto [share, read] = read_triples({path}, {.share = {member, members}});
      EXPECT_EQ(share.column_names.size(), 101u);
      EXPECT_EQ(share.row_count, read.rows);
      EXPECT_EQ(read.samples, 101u);
      const auto mine = named(share);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        auto& place = together[share.columns[i]];
        EXPECT_EQ(place, "");
        place = mine[i];
      }
    }
    EXPECT_EQ(together, whole);
  }
}

TEST_F(TriplesTest, batches_are_the_whole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i % 31) + " " + std::to_string(i % 57) + " " + std::to_string(i) + "\n";
  const auto path = file("a", text);
  const auto whole = read_triples({path}).first;
  TripleReader reader({path});
  Triples together;
  for (Triples batch; reader.next(batch, 64);) {
    together.append(batch.slice(0, batch.size()));
    EXPECT_EQ(batch.row_names.size(), reader.read().rows);
  }
  EXPECT_EQ(together.rows, whole.rows);
  EXPECT_EQ(together.columns, whole.columns);
  EXPECT_EQ(together.values, whole.values);
  EXPECT_EQ(whole.slice(990, 10).values[9], 999);
}

}  // namespace
}  // namespace shoal::data

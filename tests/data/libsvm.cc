// Goal: LIBSVM's text becomes the rows that it says, and each kind of mistake in it one line that says where and what to do. Oracle: rows written
// out by hand, and rows made up, written as text and read again.
#include "shoal/data/libsvm.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;

struct Row {
  double label;
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.label;
  for (std::size_t i = 0; i < row.columns.size(); ++i) *out << " " << row.columns[i] << ":" << row.values[i];
}

std::vector<Row> rows_of(const SparseRows& rows) {
  std::vector<Row> plain;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [label, columns, values] = rows[i];
    plain.push_back({label, {columns.begin(), columns.end()}, {values.begin(), values.end()}});
  }
  return plain;
}

template <class Real>
std::string shortest(Real value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string text_of(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    text += shortest(row.label);
    for (std::size_t i = 0; i < row.columns.size(); ++i) text += " " + std::to_string(row.columns[i] + 1) + ":" + shortest(row.values[i]);
    text += "\n";
  }
  return text;
}

// Any bits that are a finite number, columns with gaps, rows without any.
std::vector<Row> made_up(std::size_t count) {
  std::mt19937_64 random(11);
  std::vector<Row> rows(count);
  for (Row& row : rows) {
    row.label = static_cast<double>(static_cast<int>(random() % 7) - 3) / 2;
    std::uint32_t column = static_cast<std::uint32_t>(random() % 4);
    for (std::size_t i = random() % 30; i > 0; --i, column += 1 + static_cast<std::uint32_t>(random() % 1000)) {
      float value = 0;
      do {
        const auto bits = static_cast<std::uint32_t>(random());
        std::memcpy(&value, &bits, sizeof value);
      } while (!std::isfinite(value));
      row.columns.push_back(column);
      row.values.push_back(i % 3 == 0 ? std::round(value) : value);
      if (!std::isfinite(row.values.back())) row.values.back() = 1;
    }
  }
  return rows;
}

class Libsvm : public Files {
 protected:
  SparseRows read(std::string_view text, LibsvmForm form = {}) const { return read_libsvm({file("a", text)}, form).first; }
  std::string refused(std::string_view text, LibsvmForm form = {}) const {
    return refusal([&] { read(text, form); });
  }
};

TEST_F(Libsvm, rows_are_what_the_lines_say) {
  const auto [rows, read] = read_libsvm({file("a",
                                              "+1 1:0.5 3:-2e-1\n"
                                              "-1 2:1 # a comment\n"
                                              "\n"
                                              "# another\n"
                                              "  2.5\t4:+7.25  \n"
                                              "3\n"
                                              "1e2 qid:17 1:0")});
  EXPECT_EQ(rows_of(rows), (std::vector<Row>{{1, {0, 2}, {0.5f, -0.2f}}, {-1, {1}, {1}}, {2.5, {3}, {7.25f}}, {3, {}, {}}, {100, {0}, {0}}}));
  EXPECT_EQ(rows.width, 4u);
  EXPECT_EQ(read.lines, 7u);
  EXPECT_EQ(read.samples, 5u);
  EXPECT_EQ(read.kept, 5u);
  EXPECT_EQ(read.columns, 4u);
  EXPECT_EQ(read.values, 5u);
  EXPECT_EQ(read.queries, 1u);
  EXPECT_EQ(sentence(read), "read 5 samples of 4 columns with 5 values from a; 1 query id left out; 0 lines skipped");
}

TEST_F(Libsvm, what_is_written_is_read_again_to_the_bit) {
  const auto rows = made_up(2000);
  EXPECT_EQ(rows_of(read(text_of(rows))), rows);
  for (const auto& [name, pack] : kPackers) EXPECT_EQ(rows_of(read(pack(text_of(rows)))), rows) << name;
}

TEST_F(Libsvm, indices_may_count_from_zero) {
  EXPECT_EQ(rows_of(read("1 0:5 7:6\n", {.zero_based = true})), (std::vector<Row>{{1, {0, 7}, {5, 6}}}));
  EXPECT_EQ(read("1 0:5 7:6\n", {.zero_based = true}).width, 8u);
}

TEST_F(Libsvm, the_width_may_be_given) {
  EXPECT_EQ(read("1 3:5\n", {.columns = 10}).width, 10u);
  EXPECT_EQ(read("1 10:5\n", {.columns = 10}).width, 10u);
  EXPECT_EQ(refused("1 3:5\n1 11:5\n", {.columns = 10}), "a:2: '11:5' is in a column beyond 10 (read it with as many columns as it has)");
}

TEST_F(Libsvm, the_largest_index_is_a_column) {
  EXPECT_EQ(rows_of(read("1 4294967295:2")), (std::vector<Row>{{1, {4294967294}, {2}}}));
  for (const char* index : {"4294967296", "99999999999999999999999"}) {
    EXPECT_EQ(refused("1 " + std::string(index) + ":2"),
              "a:1: '" + std::string(index) + ":2' is in a column beyond 4294967295 (that many columns can be read)");
  }
}

TEST_F(Libsvm, mistakes_are_named_with_their_place) {
  const std::string line = "a line is: label index:value index:value ...";
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"abc 1:2", "'abc' is no label (" + line + ", the label one number)"},
           {"1,3 1:2", "'1,3' is no label (" + line + ", the label one number)"},
           {"1:2 3:4", "'1:2' is no label (" + line + ", the label one number)"},
           {"+-1 3:4", "'+-1' is no label (" + line + ", the label one number)"},
           {"nan 1:2", "the label is 'nan' (give the sample a number, or leave it out)"},
           {"1 2", "'2' is no index:value (" + line + ")"},
           {"1 x:2", "'x:2' is no index:value (" + line + ")"},
           {"1 2:x", "'2:x' is no index:value (" + line + ")"},
           {"1 2:", "'2:' is no index:value (" + line + ")"},
           {"1 -2:1", "'-2:1' is no index:value (" + line + ")"},
           {"1 2:0x10", "'2:0x10' is no index:value (" + line + ")"},
           {"1 2:1 \x1b[2J:1", "'?[2J:1' is no index:value (" + line + ")"},
           {"1 2:NaN", "'2:NaN' is not finite (give it a number, or leave the pair out, which means 0)"},
           {"1 2:-inf", "'2:-inf' is not finite (give it a number, or leave the pair out, which means 0)"},
           {"1 2:1e39", "'2:1e39' is beyond a 32-bit floating-point number (scale the column)"},
           {"1 2:-1e999", "'2:-1e999' is beyond a 32-bit floating-point number (scale the column)"},
           {"1 0:1", "there is an index 0 (indices count from 1; say zero-based if this file counts from 0)"},
           {"1 7:1 3:1", "index 3 stands after index 7 (indices of a line ascend, each once)"},
           {"1 7:1 7:1", "index 7 stands after index 7 (indices of a line ascend, each once)"},
       }) {
    EXPECT_EQ(refused("1 1:1\n" + text + "\n"), "a:2: " + said);
  }
  EXPECT_EQ(refused("1 2:" + std::string(100, '?')), "a:1: '2:" + std::string(38, '?') + "...' is no index:value (" + line + ")");
}

TEST_F(Libsvm, what_is_too_small_is_zero) {
  EXPECT_EQ(rows_of(read("1 1:1e-50 2:-1e-60 3:1e-40")), (std::vector<Row>{{1, {0, 1, 2}, {0, -0.0f, 1e-40f}}}));
}

TEST_F(Libsvm, a_file_without_samples_is_refused) {
  for (const char* text : {"", "\n\n", "# only\n# comments"}) EXPECT_EQ(refused(text), "a: has no sample (is it the right file?)");
}

TEST_F(Libsvm, faulty_lines_can_be_left_out_and_are_counted) {
  const auto path = file("a", "1 1:1\nx 1:1\n2 2:2 1:1\n3 3:3\n4 4:nan\n5 5:1e99\n6 6\n");
  const auto [rows, read] = read_libsvm({path}, {}, {.skip_faulty = true});
  EXPECT_EQ(rows_of(rows), (std::vector<Row>{{1, {0}, {1}}, {3, {2}, {3}}}));
  EXPECT_EQ(read.skipped(), 5u);
  EXPECT_EQ(
      without_folder(sentence(read)),
      "read 2 samples of 3 columns with 2 values from a; 5 lines skipped (2 no number, 1 not finite, 1 out of range, 1 out of order; the first: "
      "a:2: 'x' is no label)");
}

TEST_F(Libsvm, nothing_is_left_of_a_file_of_another_kind) {
  const auto path = file("a", "a,b,c\nd,e,f\n");
  EXPECT_EQ(refusal([&] { read_libsvm({path}, {}, {.skip_faulty = true}); }),
            "a: has no sample, 2 lines skipped (the first: a:1: 'a,b,c' is no label)");
}

// Of n members each has every n-th sample or one more, and together they have each sample once, in order; all know the whole's width.
TEST_F(Libsvm, shares_are_the_whole) {
  const auto rows = made_up(203);
  const auto path = file("a", text_of(rows));
  const auto whole = read_libsvm({path}).second;
  for (const std::uint32_t members : {1u, 2u, 3u, 5u, 8u, 300u}) {
    std::vector<std::vector<Row>> shares;
    for (std::uint32_t member = 0; member < members; ++member) {
      const auto [share, read] = read_libsvm({path}, {}, {.share = {member, members}});
      shares.push_back(rows_of(share));
      EXPECT_EQ(share.width, whole.columns);
      EXPECT_EQ(read.samples, rows.size());
      EXPECT_EQ(read.values, whole.values);
      EXPECT_EQ(read.kept, share.size());
      EXPECT_LE(share.size(), rows.size() / members + 1);
      EXPECT_GE(share.size(), rows.size() / members);
    }
    std::vector<std::size_t> taken(members, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::uint32_t owner = 0;
      while (!Share{owner, members}.holds(i)) ++owner;
      ASSERT_LT(owner, members);
      ASSERT_LT(taken[owner], shares[owner].size());
      EXPECT_EQ(shares[owner][taken[owner]++], rows[i]);
    }
    for (std::uint32_t member = 0; member < members; ++member) EXPECT_EQ(taken[member], shares[member].size());
  }
  EXPECT_EQ(refusal([&] { read_libsvm({path}, {}, {.share = {2, 2}}); }), "there is no member 2 of 2 (members count from 0)");
}

// Classes that take turns are dealt to everybody: with one member in two every second sample is of one class.
TEST(SharesOfSamples, deal_data_with_a_period_evenly) {
  for (const std::uint32_t members : {2u, 3u, 4u, 5u, 8u}) {
    for (std::uint32_t member = 0; member < members; ++member) {
      std::vector<int> of_class(members, 0);
      for (std::uint64_t sample = 0; sample < 100 * members * members; ++sample)
        of_class[sample % members] += Share{member, members}.holds(sample) ? 1 : 0;
      for (const int count : of_class) EXPECT_EQ(count, 100) << member << " of " << members;
    }
  }
}

TEST_F(Libsvm, batches_are_the_whole) {
  const auto rows = made_up(1000);
  const auto path = file("a", text_of(rows)), more = file("b", text_of(rows));
  for (const std::size_t most : {1u, 7u, 1000u, 5000u}) {
    LibsvmReader reader({path, more});
    std::vector<Row> read;
    for (SparseRows batch; reader.next(batch, most);) {
      EXPECT_LE(batch.size(), most);
      const auto part = rows_of(batch);
      read.insert(read.end(), part.begin(), part.end());
    }
    auto expected = rows;
    expected.insert(expected.end(), rows.begin(), rows.end());
    EXPECT_EQ(read, expected);
    EXPECT_EQ(reader.read().columns, read_libsvm({path}).first.width);
    EXPECT_EQ(reader.read().samples, 2000u);
    SparseRows batch;
    EXPECT_FALSE(reader.next(batch, most));
  }
}

TEST(SparseRowsOf, slices_are_rows_of_the_whole) {
  SparseRows rows;
  rows.width = 5;
  const std::vector<std::uint32_t> columns = {1, 4};
  const std::vector<float> values = {2, 3};
  for (int i = 0; i < 5; ++i) rows.append({static_cast<double>(i), std::span(columns).first(i % 3), std::span(values).first(i % 3)});
  const auto slice = rows.slice(1, 3);
  ASSERT_EQ(slice.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(slice[i].label, static_cast<double>(i + 1));
    EXPECT_EQ(slice[i].columns.size(), (i + 1) % 3);
  }
  EXPECT_EQ(slice[1].values[1], 3);
  SparseRows copy;
  copy.append(rows.slice(0, 1));
  copy.append(slice);
  copy.append(rows.slice(4, 1));
  EXPECT_EQ(rows_of(copy), rows_of(rows));
}

}  // namespace
}  // namespace shoal::data

// Goal: each kind of matrix becomes the matrix that the format's definition says. Oracle: dense matrices written out by hand.
#include "shoal/data/matrix_market.h"

#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;

using Dense = std::vector<std::vector<float>>;

Dense dense(const Triples& triples) {
  Dense matrix(triples.row_count, std::vector<float>(triples.column_count));
  for (std::size_t i = 0; i < triples.size(); ++i) matrix.at(triples.rows[i]).at(triples.columns[i]) += triples.values[i];
  return matrix;
}

class MatrixMarketTest : public Files {
 protected:
  Dense read(const std::string& kind, const std::string& rest) const {
    return dense(read_matrix_market(file("m", "%%MatrixMarket matrix " + kind + "\n" + rest)).first);
  }
  std::string refused(const std::string& text) const {
    return refusal([&] { read_matrix_market(file("m", text)); });
  }
};

TEST_F(MatrixMarketTest, coordinates_of_a_general_matrix) {
  const std::string rest = "% made by hand\n%\n\n 3 4 3 \n1 1 0.5\n3 4 -2e1\n\n2\t1\t7\n";
  const Dense expected = {{0.5f, 0, 0, 0}, {7, 0, 0, 0}, {0, 0, 0, -20}};
  EXPECT_EQ(read("coordinate real general", rest), expected);
  EXPECT_EQ(read("COORDINATE Real General", rest), expected);
  EXPECT_EQ(read("coordinate integer general", "1 2 1\n1 2 -3\n"), (Dense{{0, -3}}));
  EXPECT_EQ(read("coordinate pattern general", "2 2 2\n1 2\n2 1"), (Dense{{0, 1}, {1, 0}}));
  EXPECT_EQ(read("coordinate real general", "2 2 0\n"), (Dense{{0, 0}, {0, 0}}));
}

TEST_F(MatrixMarketTest, the_triangle_of_a_symmetric_matrix_is_both) {
  EXPECT_EQ(read("coordinate real symmetric", "2 2 2\n1 1 5\n2 1 3\n"), (Dense{{5, 3}, {3, 0}}));
  EXPECT_EQ(read("coordinate pattern symmetric", "2 2 2\n2 2\n2 1\n"), (Dense{{0, 1}, {1, 1}}));
  EXPECT_EQ(read("coordinate real skew-symmetric", "2 2 1\n2 1 3\n"), (Dense{{0, -3}, {3, 0}}));
}

TEST_F(MatrixMarketTest, arrays_go_column_after_column) {
  EXPECT_EQ(read("array real general", "2 3\n1\n2\n3\n4\n5\n6\n"), (Dense{{1, 3, 5}, {2, 4, 6}}));
  EXPECT_EQ(read("array integer symmetric", "3 3\n1\n2\n3\n4\n5\n6\n"), (Dense{{1, 2, 3}, {2, 4, 5}, {3, 5, 6}}));
  EXPECT_EQ(read("array real skew-symmetric", "3 3\n1\n2\n3\n"), (Dense{{0, -1, -2}, {1, 0, -3}, {2, 3, 0}}));
  EXPECT_EQ(read("array real skew-symmetric", "1 1\n"), (Dense{{0}}));
  EXPECT_EQ(read("array real symmetric", "1 1\n4"), (Dense{{4}}));
}

TEST_F(MatrixMarketTest, packed_and_in_shares_and_batches_it_is_the_same) {
  std::string text = "%%MatrixMarket matrix coordinate real symmetric\n100 100 199\n";
  for (int i = 1; i <= 100; ++i) text += std::to_string(i) + " " + std::to_string(i) + " " + std::to_string(i) + "\n";
  for (int i = 2; i <= 100; ++i) text += std::to_string(i) + " " + std::to_string(i - 1) + " 0.5\n";
  const auto [whole, read] = read_matrix_market(file("m", text));
  EXPECT_EQ(whole.size(), 298u);
  EXPECT_EQ(sentence(read, {"entries"}), "read 199 entries of 100 rows and 100 columns from m; 0 lines skipped");
  EXPECT_EQ(read.values, 298u);
  for (const auto& [name, pack] : kPackers) EXPECT_EQ(dense(read_matrix_market(file("p", pack(text))).first), dense(whole)) << name;
  Triples together, in_batches;
  together.row_count = together.column_count = 100;
  for (std::uint32_t member = 0; member < 3; ++member) {
    const auto share = read_matrix_market(folder_ / "m", {.share = {member, 3}}).first;
    together.append(share.slice(0, share.size()));
  }
  EXPECT_EQ(together.size(), whole.size());
  EXPECT_EQ(dense(together), dense(whole));
  MatrixMarketReader reader(folder_ / "m");
  for (Triples batch; reader.next(batch, 10);) in_batches.append(batch.slice(0, batch.size()));
  EXPECT_EQ(in_batches.rows, whole.rows);
  EXPECT_EQ(in_batches.values, whole.values);
}

TEST_F(MatrixMarketTest, mistakes_are_named_with_their_place) {
  const std::string first = "%%MatrixMarket matrix coordinate real general\n";
  const std::string banner = "(the first line is: %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric)";
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "m: is empty " + banner},
           {"1 2 3\n", "m:1: '1 2 3' begins no matrix that can be read " + banner},
           {"%%MatrixMarket matrix coordinate complex general\n",
            "m:1: '%%MatrixMarket matrix coordinate complex...' begins no matrix that can be read " + banner},
           {"%%MatrixMarket matrix array pattern general\n", "m:1: a pattern is neither an array nor skew-symmetric " + banner},
           {first + "% more\n", "m: ends before its sizes (was it cut short?)"},
           {first + "3 3\n", "m:2: '3 3' says no sizes (the line is: rows columns entries)"},
           {"%%MatrixMarket matrix array real general\n3 3 9\n", "m:2: '3 3 9' says no sizes (the line is: rows columns)"},
           {first + "4294967296 3 1\n", "m:2: '4294967296 3 1': the matrix is too large (at most 4294967295 rows and columns)"},
           {"%%MatrixMarket matrix array real symmetric\n3 2\n", "m:2: a symmetric matrix is square (rows and columns differ here)"},
           {first + "3 3 1\n4 1 1\n", "m:3: '4 1 1' is outside of a matrix of 3 x 3 (rows and columns count from 1)"},
           {first + "3 3 1\n0 1 1\n", "m:3: '0 1 1' is outside of a matrix of 3 x 3 (rows and columns count from 1)"},
           {first + "3 3 1\n1 1\n", "m:3: '1 1' is no entry (a line is: row column value)"},
           {first + "3 3 1\n1 1 1 1\n", "m:3: '1 1 1 1' is no entry (a line is: row column value)"},
           {first + "3 3 1\n1 1 nan\n", "m:3: '1 1 nan' is not finite (give it a number)"},
           {first + "3 3 1\n1 1 1e40\n", "m:3: '1 1 1e40' is beyond a 32-bit floating-point number (scale the matrix)"},
           {first + "3 3 1\n1 1 1\n2 2 2\n", "m:4: more entries than the 1 of the sizes (correct the sizes)"},
           {first + "3 3 2\n1 1 1\n", "m:3: ends after 1 of 2 entries (was it cut short?)"},
           {first + "9 9 18446744073709551615\n1 1 1\n", "m:3: ends after 1 of 18446744073709551615 entries (was it cut short?)"},
           {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", "m:3: '1 1 1.5' has no integer (say real in the first line)"},
           {"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n",
            "m:3: '1 2 1' is above the diagonal (of a symmetric matrix a file has the lower triangle)"},
           {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
            "m:3: '1 1 1' is on the diagonal of a skew-symmetric matrix (it is zero there; leave it out)"},
           {"%%MatrixMarket matrix array real general\n2 1\n1\n", "m:3: ends after 1 of 2 entries (was it cut short?)"},
       }) {
    EXPECT_EQ(refused(text), said);
  }
}

TEST_F(MatrixMarketTest, faulty_entries_can_be_left_out) {
  const auto path = file("m", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n3 1 1\n2 2 2\n");
  const auto [triples, read] = read_matrix_market(path, {.skip_faulty = true});
  EXPECT_EQ(dense(triples), (Dense{{1, 0}, {0, 2}}));
  EXPECT_EQ(read.skipped(), 1u);
}

}  // namespace
}  // namespace shoal::data

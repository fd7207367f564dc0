// Goal: samples are the rows of the file whatever its format. Oracle: files written by hand.
#include "shoal/data/samples.h"

#include <gmock/gmock.h>

#include "shoal/data/idx.h"
#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;
using testing::ElementsAre;
using namespace std::string_literals;

using Samples = Files;

std::vector<std::vector<float>> dense(const SparseRows& rows) {
  std::vector<std::vector<float>> matrix(rows.size(), std::vector<float>(rows.width));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows[i].columns.size(); ++k) matrix[i][rows[i].columns[k]] = rows[i].values[k];
  }
  return matrix;
}

const std::string kImages = "\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\3"s + "\0\1\2\0\xFF\0"s + "\7\0\0\0\0\x80"s;  // two of 2 x 3 bytes
const std::string kLabels = "\0\0\x08\x01\0\0\0\2\5\x09"s;

TEST_F(Samples, images_and_the_labels_beside_them_are_rows) {
  for (const bool packed : {false, true}) {
    const auto path = file("t-images-idx3-ubyte", packed ? gzip(kImages) : kImages);
    EXPECT_THAT(read_samples({path}).first.labels, testing::Each(0.0)) << "no labels there";
    const auto labels = file("t-labels-idx1-ubyte", packed ? gzip(kLabels) : kLabels);
    const auto [rows, read] = read_samples({path});
    EXPECT_THAT(dense(rows), ElementsAre(ElementsAre(0, 1, 2, 0, 255, 0), ElementsAre(7, 0, 0, 0, 0, 128)));
    EXPECT_THAT(rows.labels, ElementsAre(5, 9));
    EXPECT_EQ(sentence(read), "read 2 samples of 6 columns with 5 values from t-images-idx3-ubyte, labels from t-labels-idx1-ubyte; 0 lines skipped");
    EXPECT_EQ(read_samples({path, path}).first.size(), 4u);
    fs::remove(labels);
  }
}

TEST_F(Samples, all_types_of_numbers_are_read) {
  const auto one = [&](char type, const std::string& number) {
    return dense(read_samples({file("a", "\0\0"s + type + "\1\0\0\0\1"s + number)}).first).at(0).at(0);
  };
  EXPECT_EQ(one(0x08, "\xFE"), 254);
  EXPECT_EQ(one(0x09, "\xFE"), -2);
  EXPECT_EQ(one(0x0B, "\xFE\1"), -511);
  EXPECT_EQ(one(0x0C, "\xFF\xFF\xFE\1"), -511);
  EXPECT_EQ(one(0x0D, "\xC0\x20\0\0"s), -2.5f);
  EXPECT_EQ(one(0x0E, "\xC0\x04\0\0\0\0\0\0"s), -2.5f);
}

TEST_F(Samples, a_matrix_is_its_rows_with_numbers_in_the_same_place_added_up) {
  const auto path = file("m.mtx", "%%MatrixMarket matrix coordinate real general\n4 3 5\n3 1 5\n1 3 2\n1 1 1\n3 3 4\n1 3 0.5\n");
  const auto [rows, read] = read_samples({path});
  EXPECT_THAT(dense(rows), ElementsAre(ElementsAre(1, 0, 2.5f), ElementsAre(0, 0, 0), ElementsAre(5, 0, 4), ElementsAre(0, 0, 0)));
  EXPECT_EQ(read.samples, 4u);
}

TEST_F(Samples, batches_together_are_the_whole) {
  const auto whole = read_samples({file("l.txt", "1 1:1\n2 2:1\n3 3:1\n")}).first;
  for (const auto& path : {file("l.txt", "1 1:1\n2 2:1\n3 3:1\n"), file("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 1\n3 3 1\n")}) {
    SampleReader reader({path});
    SparseRows together, batch;
    while (reader.next(batch, 2)) together.append(batch.all());
    together.width = whole.width;
    EXPECT_EQ(dense(together), dense(whole));
  }
}

TEST_F(Samples, mistakes_are_one_line) {
  EXPECT_EQ(refusal([&] { read_samples({file("a", kImages.substr(0, 20))}); }), "a: ends before its last sample, so it was cut short (copy or pack it again)");
  EXPECT_EQ(refusal([&] { read_samples({file("a", kImages.substr(0, 9))}); }), "a: ends inside its sizes, so it was cut short");
  EXPECT_EQ(refusal([&] { read_samples({file("a", kImages), file("b", kLabels)}); }), "b: has 1 numbers a sample (the first file has 6)");
  EXPECT_EQ(refusal([&] { read_samples({file("a", kImages), file("b", "1 1:1\n")}); }),
            "b: is no IDX file (its first bytes are 0, 0, a type and how many dimensions it has)");
  EXPECT_EQ(refusal([&] { read_samples({file("a", "\0\0\x0D\1\0\0\0\1\x7F\x80\0\0"s)}); }), "a: sample 1 has a number that is not finite");
  file("u-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\1\5"s);
  EXPECT_EQ(refusal([&] { read_samples({file("u-images-idx3-ubyte", kImages)}); }),
            "u-labels-idx1-ubyte: has no label for each of the 2 samples of u-images-idx3-ubyte");
  EXPECT_EQ(refusal([&] { read_samples({}); }), "no file to read");
}

}  // namespace
}  // namespace shoal::data

// Goal: the choice is that of the published byte rule where bytes decide, and of arithmetic where links are quick.
#include "shoal/exchange/matrix_way.h"

#include <gtest/gtest.h>

namespace shoal::exchange {
namespace {

constexpr double kMultiply = 4e9;

collective::LinkModel link_of(double bits) { return {.alpha = 200e-6, .rate = bits / 8}; }

// sector: 105 classes, 55,197 words, 163 of them in a text; 50 texts touch 4,242 (research/ps.md, 5.3).
constexpr MatrixLoad kSector{.vectors = 50, .entries = 8150, .touched = 4242, .changed = 12000, .rows = 55197, .width = 105};
// Fashion-MNIST: 10 classes, 784 pixels, half of them not black, 25 images.
constexpr MatrixLoad kFashion{.vectors = 25, .entries = 9800, .touched = 784, .changed = 784, .rows = 784, .width = 10};

TEST(MatrixWay, takes_factors_for_many_classes_and_words_and_rows_for_few_of_both) {
  for (const double rate : {1e6, 10e6, 100e6}) {
    EXPECT_EQ(prices(kSector, 4, link_of(rate), kMultiply)[0].way, MatrixWay::factors) << rate;
    EXPECT_NE(prices(kFashion, 4, link_of(rate), kMultiply)[0].way, MatrixWay::factors) << rate;
  }
}

TEST(MatrixWay, bytes_are_those_of_the_protocols) {
  const auto link = link_of(10e6);
  const double push = 0.75 * 4242 * (8 + 105 * 4);
  EXPECT_NEAR(price(MatrixWay::rows, kSector, 4, link, kMultiply).sent, 2 * push + 0.75 * 4242 * 8, 1);
  EXPECT_NEAR(price(MatrixWay::all_rows, kSector, 4, link, kMultiply).sent, 2 * 0.75 * 55197 * 105 * 4, 1);
  EXPECT_NEAR(price(MatrixWay::factors, kSector, 4, link, kMultiply).sent, 3 * (50 * 105 * 4 + 8150 * 5 + 4242 * 3), 1);
  EXPECT_EQ(price(MatrixWay::factors, kSector, 1, link, kMultiply).sent, 0);
}

// Where the link is quick, what others' factors cost in arithmetic counts.
TEST(MatrixWay, quick_links_and_slow_arithmetic_make_rows_win) {
  EXPECT_EQ(prices(kSector, 64, link_of(100e9), 1e9)[0].way, MatrixWay::rows);
  EXPECT_EQ(prices(kSector, 4, link_of(10e6), 1e9)[0].way, MatrixWay::factors);
}

}  // namespace
}  // namespace shoal::exchange

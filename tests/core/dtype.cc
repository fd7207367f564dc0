// Names of types go out into plans and come back.
#include "shoal/core/dtype.h"

#include <gtest/gtest.h>

#include "shoal/core/error.h"

namespace shoal {
namespace {

TEST(DType, has_the_size_of_its_element) {
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::i8), 1u);
  EXPECT_EQ(size_of(DType::u8), 1u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
}

TEST(DType, is_found_by_its_name) {
  for (DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i32,
                     DType::i64, DType::boolean}) {
    EXPECT_EQ(dtype_from(name(type)), type);
  }
}

TEST(DType, refuses_other_names_and_says_which_there_are) {
  try {
    dtype_from("float32");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_STREQ(error.what(),
                 "no element type is called 'float32' (one of f32, f64, f16, bf16, i8, u8, i32, i64, bool)");
  }
}

}  // namespace
}  // namespace shoal

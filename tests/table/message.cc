// What comes from outside is refused in words before anybody uses it.
#include "shoal/table/message.h"

#include <gtest/gtest.h>

#include <limits>

#include "shoal/core/error.h"
#include "shoal/table/spec.h"

namespace shoal::table {
namespace {

TEST(Message, rows_lie_keys_first) {
  Message message = Message::of_rows(Kind::update, 1, 2, 3 * sizeof(float));
  message.key_places()[1] = 7;
  message.value_places<float>()[5] = 2.5F;
  EXPECT_EQ(message.keys()[1], 7u);
  EXPECT_EQ(message.values<float>().size(), 6u);
  EXPECT_EQ(message.values<float>()[5], 2.5F);
  EXPECT_EQ(fault_of(message.header, true), "");
  EXPECT_EQ(fault_of(message, 3 * sizeof(float)), "");
  EXPECT_EQ(fault_of(message, 4 * sizeof(float)), "40 bytes for 2 rows of 16");
}

TEST(Message, a_header_that_cannot_be_one_is_named) {
  Header header = Message::of_rows(Kind::request, 1, 4, 0).header;
  EXPECT_EQ(fault_of(header, false), "a message on the wrong lane");
  header.count = 5;
  EXPECT_EQ(fault_of(header, true), "fewer bytes than keys");
  header.count = 3;
  EXPECT_EQ(fault_of(header, true), "rows of unequal length");
  header.kind = static_cast<Kind>(200);
  EXPECT_EQ(fault_of(header, true), "a message of unknown kind 200");
  header = {};
  header.kind = Kind::open;
  header.length = 5000;
  EXPECT_EQ(fault_of(header, true), "a message of 5000 bytes");
  header.kind = Kind::seen;
  EXPECT_EQ(fault_of(header, true), "a body where none belongs");
  header.length = 0;
  header.clock = std::numeric_limits<Clock>::max();
  EXPECT_EQ(fault_of(header, true), "a clock of 9223372036854775807");
  header = Message::of_changes(1, 2, 31).header;
  EXPECT_EQ(fault_of(header, false), "fewer bytes than keys and their columns");
  EXPECT_EQ(fault_of(header, true), "a message on the wrong lane");
  header.kind = Kind::rows;
  header.length = ~0u;
  EXPECT_EQ(fault_of(header, false), "a message of 4294967295 bytes");
}

TEST(Spec, text_says_all_of_it) {
  for (const Spec& spec : {Spec{"a", DType::i64, 3, Bsp{}, Initial::constant(0), {}},
                           Spec{"w/2", DType::f32, 64, Essp{7}, Initial::normal(0, 0.1, 5), Rule::adam(0.1)},
                           Spec{"u", DType::f64, 1, Async{}, Initial::uniform(-1, 1.0 / 3, 9), Rule::sgd(1.0 / 3, 0.9)}}) {
    EXPECT_EQ(text_of(spec_from(text_of(spec))), text_of(spec));
  }
}

TEST(Spec, what_is_no_description_is_refused) {
  for (const char* text : {"", "a", "a: f32 x 3", "a: f32 x 0, bsp, constant 0 0 0, sum", "a: f16 x 1, bsp, constant 0 0 0, sum",
                           "a: f32 x 1, bsp, cubic 0 0 0, sum",
                           "a: i32 x 1, bsp, constant 0 0 0, sgd:0.1", "a: f32 x 1, bsp, constant 0 0 0",
                           "a: f32 x 1, ssp:x, constant 0 0 0, sum", "a: f32 x 1, bsp, uniform 2 1 0, sum",
                           "a: f32 x 1, bsp, constant nan 0 0, sum"}) {
    EXPECT_THROW(spec_from(text), Error) << text;
  }
}

TEST(Initial, values_depend_on_seed_key_and_column_alone) {
  const Initial normal = Initial::normal(1, 2, 42);
  double sum = 0, squares = 0;
  constexpr int kRows = 20000;
  for (Key key = 0; key < kRows; ++key) {
    const double value = normal.value(key, 3);
    EXPECT_EQ(value, normal.value(key, 3));
    sum += value;
    squares += (value - 1) * (value - 1);
  }
  EXPECT_NEAR(sum / kRows, 1, 0.06);
  EXPECT_NEAR(squares / kRows, 4, 0.2);
  EXPECT_NE(normal.value(1, 3), normal.value(1, 4));
}

}  // namespace
}  // namespace shoal::table

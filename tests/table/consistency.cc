#include "shoal/table/consistency.h"

#include <gtest/gtest.h>

#include "shoal/core/error.h"

namespace shoal::table {
namespace {

TEST(Consistency, a_name_says_all_of_it) {
  for (const char* text : {"bsp", "bsp:2", "ssp:0", "ssp:3", "essp:31", "cap:2", "vap:0.5", "vap-strong:1e-05", "cvap:3:2",
                           "cvap-strong:0:7.25", "significance:0.01:3", "dssp:1:5", "pssp:3:2", "async"}) {
    EXPECT_EQ(name(consistency_from(text)), text);
  }
}

TEST(Consistency, what_is_none_is_refused_with_a_list) {
  for (const char* text : {"", "sp:3", "ssp", "ssp:", "ssp:-1", "ssp:3x", "essp:9999999999", "bsp:x", "async:2", "ssp:1.5",
                           "vap", "vap:0", "vap:-1", "vap:inf", "cvap:3", "cvap:0.5:3", "significance:0.01",
                           "significance:0:2", "dssp:3", "dssp:5:1", "pssp:1:0"}) {
    try {
      consistency_from(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("one of bsp, bsp:BACKUPS, ssp:S"), std::string::npos) << error.what();
    }
  }
}

TEST(Consistency, readers_need_the_clocks_before_the_last_s) {
  EXPECT_EQ(needed_age(Bsp{}, 7), 7);
  EXPECT_EQ(needed_age(Ssp{3}, 7), 4);
  EXPECT_EQ(needed_age(Essp{3}, 2), -1);
  EXPECT_EQ(needed_age(Async{}, 7), kNever);
}

TEST(Consistency, writers_may_be_one_clock_further_ahead_than_readers) {
  EXPECT_EQ(widest_gap(Bsp{}), 1);
  EXPECT_EQ(widest_gap(Ssp{3}), 4);
  EXPECT_EQ(widest_gap(Async{}), std::nullopt);
}

}  // namespace
}  // namespace shoal::table

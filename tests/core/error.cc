// An error is one line, whatever went into it, and decides the exit code.
#include "shoal/core/error.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(Error, reads_as_where_what_and_hint) {
  EXPECT_STREQ(Error(Code::io, "cannot be read", "data.gz", "is it there?").what(),
               "data.gz: cannot be read (is it there?)");
}

TEST(Error, leaves_out_what_is_not_known) {
  EXPECT_STREQ(Error(Code::io, "cannot be read").what(), "cannot be read");
  EXPECT_STREQ(Error(Code::io, "cannot be read", "data.gz").what(), "data.gz: cannot be read");
  EXPECT_STREQ(Error(Code::io, "cannot be read", "", "is it there?").what(), "cannot be read (is it there?)");
}

TEST(Error, never_spans_two_lines) {
  const Error error(Code::io, "a\nb", "c\r\nd", "e\nf");
  EXPECT_STREQ(error.what(), "c  d: a b (e f)");
  EXPECT_EQ(error.fact(), "a b");
  EXPECT_EQ(error.where(), "c  d");
  EXPECT_EQ(error.hint(), "e f");
}

TEST(Error, gives_the_exit_code_of_its_kind) {
  for (Code code : {Code::invalid_argument, Code::mismatch, Code::unsupported}) EXPECT_EQ(exit_code(code), 2);
  for (Code code : {Code::io, Code::timeout, Code::cancelled, Code::internal}) EXPECT_EQ(exit_code(code), 1);
  EXPECT_EQ(exit_code(Code::peer_lost), 3);
}

TEST(Error, has_a_name_for_its_kind) {
  EXPECT_STREQ(name(Code::peer_lost), "peer_lost");
  EXPECT_STREQ(name(Code::invalid_argument), "invalid_argument");
}

}  // namespace
}  // namespace shoal

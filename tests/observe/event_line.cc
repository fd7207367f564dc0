// Events survive the way to a file and back; what is no event is recognised.
#include "shoal/observe/event_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

std::string line_of(const Event& event, std::string_view name, int rank = -1) {
  std::string text;
  append_line(text, event, name, rank);
  return text;
}

TEST(EventLine, holds_only_what_is_not_default) {
  EXPECT_EQ(line_of({EventKind::produced, ms(1), ms(1)}, ""), "{\"kind\":\"produced\",\"begin\":1000000}\n");
  EXPECT_EQ(line_of({EventKind::exchange, ms(1), ms(2), 3, 1, 4096, 0}, "fc\"1\"", 2),
            "{\"rank\":2,\"kind\":\"exchange\",\"begin\":1000000,\"end\":2000000,\"step\":3,\"peer\":1,\"value\":4096,"
            "\"name\":\"fc\\\"1\\\"\"}\n");
}

TEST(EventLine, comes_back_as_it_went) {
  for (int kind = 0; kind <= static_cast<int>(EventKind::note); ++kind) {
    const Event event{static_cast<EventKind>(kind), ms(-5), ms(7), 9, 4, 0.1, 0};
    ParsedLine parsed;
    ASSERT_TRUE(parse_line(line_of(event, "a\nname", 3), parsed)) << name(event.kind);
    EXPECT_EQ(parsed.event.kind, event.kind);
    EXPECT_EQ(parsed.event.begin, event.begin);
    EXPECT_EQ(parsed.event.end, event.end);
    EXPECT_EQ(parsed.event.step, 9);
    EXPECT_EQ(parsed.event.peer, 4);
    EXPECT_EQ(parsed.event.value, 0.1);
    EXPECT_EQ(parsed.name, "a\nname");
    EXPECT_EQ(parsed.rank, 3);
  }
}

TEST(EventLine, carries_a_loss_that_is_no_number) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ParsedLine parsed;
  ASSERT_TRUE(parse_line(line_of({EventKind::metric, ms(1), ms(1), 0, -1, std::nan("")}, "loss"), parsed));
  EXPECT_TRUE(std::isnan(parsed.event.value));
  for (double value : {infinity, -infinity}) {
    ASSERT_TRUE(parse_line(line_of({EventKind::metric, ms(1), ms(1), 0, -1, value}, "loss"), parsed));
    EXPECT_EQ(parsed.event.value, value);
  }
}

TEST(EventLine, keeps_names_that_are_not_utf8_readable) {
  ParsedLine parsed;
  EXPECT_TRUE(parse_line(line_of({EventKind::note, ms(1), ms(1)}, "\xff\xfe"), parsed));
}

TEST(EventLine, anything_else_is_not_an_event) {
  ParsedLine parsed;
  for (const char* line :
       {"", "{}", "[]", "7", "{\"kind\":\"sent\"}", "{\"kind\":\"sent\",\"begin\":", "{\"kind\":\"exploded\",\"begin\":1}",
        "{\"kind\":\"sent\",\"begin\":\"1\"}", "{\"kind\":\"sent\",\"begin\":1.5}", "{\"kind\":\"sent\",\"begin\":2,\"end\":1}",
        "{\"kind\":\"sent\",\"begin\":9223372036854775807}", "{\"kind\":\"sent\",\"begin\":1,\"peer\":-2}",
        "{\"kind\":\"sent\",\"begin\":1,\"value\":\"many\"}", "{\"kind\":\"sent\",\"begin\":1,\"name\":4}",
        "{\"kind\":\"sent\",\"begin\":1,\"rank\":99999999}"}) {
    EXPECT_FALSE(parse_line(line, parsed)) << line;
  }
}

TEST(EventLine, a_header_says_whose_events_follow) {
  FileHeader header, back;
  header.authors = {{2, 4, "fox", "boot", 77, -5}};
  ASSERT_TRUE(parse_header(to_line(header), back));
  EXPECT_FALSE(back.merged);
  ASSERT_EQ(back.authors.size(), 1u);
  EXPECT_EQ(back.authors[0].rank, 2);
  EXPECT_EQ(back.authors[0].size, 4);
  EXPECT_EQ(back.authors[0].host, "fox");
  EXPECT_EQ(back.authors[0].boot, "boot");
  EXPECT_EQ(back.authors[0].pid, 77);
  EXPECT_EQ(back.authors[0].unix_minus_steady_ns, -5);

  header.merged = true;
  header.unix_begin_ns = 123;
  header.remarks = {"rank 3 left no events in this folder"};
  header.authors.push_back({3, 4, "hen", "boot", 78, 6});
  ASSERT_TRUE(parse_header(to_line(header), back));
  EXPECT_TRUE(back.merged);
  EXPECT_EQ(back.authors.size(), 2u);
  EXPECT_EQ(back.unix_begin_ns, 123);
  EXPECT_EQ(back.remarks, header.remarks);
}

TEST(EventLine, anything_else_is_not_a_header) {
  FileHeader header;
  for (const char* line : {"", "{}", "{\"shoal_events\":2,\"rank\":0,\"size\":1}", "{\"shoal_events\":1}",
                           "{\"shoal_events\":1,\"rank\":4,\"size\":4}", "{\"shoal_events\":1,\"rank\":0,\"size\":0}",
                           "{\"shoal_events\":1,\"rank\":0,\"size\":99999999}", "{\"shoal_events\":1,\"ranks\":[]}",
                           "{\"shoal_events\":1,\"ranks\":[7]}", "{\"shoal_events\":1,\"ranks\":7}"}) {
    EXPECT_FALSE(parse_header(line, header)) << line;
  }
}

}  // namespace
}  // namespace shoal::observe

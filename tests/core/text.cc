// Quantities as people type them, and as Shoal shows them.
#include "shoal/core/text.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "shoal/core/error.h"
#include "tests/refusal.h"

namespace shoal {
namespace {

TEST(Text, reads_rates_in_bits_and_bytes) {
  EXPECT_EQ(parse_rate("200mbit"), 25e6);
  EXPECT_EQ(parse_rate("1gbit"), 125e6);
  EXPECT_EQ(parse_rate("25MB/s"), 25e6);
  EXPECT_EQ(parse_rate("1.5MiB/s"), 1.5 * 1024 * 1024);
  EXPECT_EQ(parse_rate("8bit"), 1);
  EXPECT_EQ(parse_rate(" 200 Mbit/s "), 25e6);
}

TEST(Text, refuses_rates_that_could_mean_two_things) {
  EXPECT_EQ(refusal([] { parse_rate("200"); }), "'200' is not a rate (for example 200mbit, 1gbit or 25MB/s)");
  for (const char* text : {"", "mbit", "25Mb/s", "25MB", "-1mbit", "0mbit", "nanmbit", "infmbit", "1e3mbit",
                           "1 2mbit", "0x10mbit", "mbit200"}) {
    EXPECT_NE(refusal([&] { parse_rate(text); }), "nothing was refused") << text;
  }
}

TEST(Text, reads_sizes_in_thousands_and_in_1024s) {
  EXPECT_EQ(parse_size("64KB"), 64000u);
  EXPECT_EQ(parse_size("8MB"), 8000000u);
  EXPECT_EQ(parse_size("1.5MiB"), 1572864u);
  EXPECT_EQ(parse_size("123"), 123u);
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4 kib"), 4096u);
}

TEST(Text, refuses_sizes_that_it_cannot_hold_or_read) {
  EXPECT_EQ(refusal([] { parse_size("8MX"); }), "'8MX' is not a size (for example 64KB, 8MB or 1.5MiB)");
  for (const char* text : {"", "MB", "-1", "99999999TB", "1..5MB", "9223372036854775808"}) {
    EXPECT_NE(refusal([&] { parse_size(text); }), "nothing was refused") << text;
  }
}

TEST(Text, reads_durations) {
  EXPECT_EQ(parse_duration("500ms"), Nanoseconds(500'000'000));
  EXPECT_EQ(parse_duration("1.5s"), Nanoseconds(1'500'000'000));
  EXPECT_EQ(parse_duration("2m"), Nanoseconds(120'000'000'000));
  EXPECT_EQ(parse_duration("85us"), Nanoseconds(85'000));
  EXPECT_EQ(parse_duration("0"), Nanoseconds(0));
}

TEST(Text, refuses_durations_without_a_unit) {
  EXPECT_EQ(refusal([] { parse_duration("5"); }), "'5' is not a duration (for example 500ms, 5s or 2m)");
  for (const char* text : {"", "s", "-5s", "5 parsecs", "99999999999h"}) {
    EXPECT_NE(refusal([&] { parse_duration(text); }), "nothing was refused") << text;
  }
}

TEST(Text, shows_three_digits_in_the_fitting_unit) {
  EXPECT_EQ(show_rate(25e6), "200 Mbit/s");
  EXPECT_EQ(show_rate(125e6), "1 Gbit/s");
  EXPECT_EQ(show_size(7.4e6), "7.4 MB");
  EXPECT_EQ(show_size(123), "123 B");
  EXPECT_EQ(show_size(0), "0 B");
  EXPECT_EQ(show_seconds(1.834), "1.83 s");
  EXPECT_EQ(show_seconds(0.012), "12 ms");
  EXPECT_EQ(show_seconds(85e-6), "85 us");
  EXPECT_EQ(show_seconds(0), "0 s");
  EXPECT_EQ(show_seconds(-0.012), "-12 ms");
  EXPECT_EQ(show_seconds(7384.2), "7384 s");
}

TEST(Text, never_shows_a_thousand_of_a_unit_that_has_a_next_one) {
  EXPECT_EQ(show_size(999.4), "999 B");
  EXPECT_EQ(show_size(999.6), "1 KB");
  EXPECT_EQ(show_size(999'600), "1 MB");
  EXPECT_EQ(show_size(5e15), "5000 TB");
}

TEST(Text, reads_what_it_shows) {
  for (double rate : {25e6, 125e6, 1.25e3}) EXPECT_EQ(parse_rate(show_rate(rate)), rate);
}

TEST(Text, shows_counts_in_thousands_and_one_of_a_noun) {
  EXPECT_EQ(show_count(0), "0");
  EXPECT_EQ(show_count(999), "999");
  EXPECT_EQ(show_count(1'000'209), "1,000,209");
  EXPECT_EQ(show_count(2, "ratings"), "2 ratings");
  EXPECT_EQ(show_count(1, "ratings"), "1 rating");
  EXPECT_EQ(show_count(1, "entries"), "1 entry");
}

TEST(Text, names_one_rank_or_several) {
  EXPECT_EQ(show_ranks(std::vector<std::uint32_t>{2}), "rank 2");
  EXPECT_EQ(show_ranks(std::vector<std::uint32_t>{1, 3, 10}), "ranks 1, 3, 10");
}

}  // namespace
}  // namespace shoal

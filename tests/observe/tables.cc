// The tables of the run drawn in a_run.h, as a terminal shows them.
#include "shoal/observe/tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

TEST(Tables, tell_where_the_time_went) {
  EXPECT_EQ(time_table(account_of(two_members(), nullptr)),
            "member    time        forward       backward      optimizer        network        waiting          other     "
            "waited for\n"
            "rank 0  0.26 s  0.04 s  15.4%  0.08 s  30.8%  0.02 s   7.7%  0.04 s  15.4%  0.04 s  15.4%  0.04 s  15.4%  rank 1: "
            "40 ms\n"
            "rank 1  0.26 s  0.04 s  15.4%  0.12 s  46.2%  0.02 s   7.7%  0.04 s  15.4%  0.00 s   0.0%  0.04 s  15.4%          "
            "    -\n"
            "mean    0.26 s  0.04 s  15.4%  0.10 s  38.5%  0.02 s   7.7%  0.04 s  15.4%  0.02 s   7.7%  0.04 s  15.4%\n");
}

TEST(Tables, end_with_what_members_noted_once_and_by_time) {
  RunEvents run = two_members();
  run.names.insert(run.names.end(), {"a late line", "a line of both"});
  const auto note = [&](std::size_t rank, double at, const std::string& line) {
    const auto name = static_cast<std::uint32_t>(std::find(run.names.begin(), run.names.end(), line) - run.names.begin());
    run.ranks[rank].events.push_back({EventKind::note, ms(at), ms(at), -1, -1, 0, name});
  };
  note(0, 30, "a line of both");
  note(0, 200, "a line of both");
  note(1, 20, "a line of both");
  note(1, 90, "a late line");
  const Account account = account_of(run, nullptr);
  EXPECT_EQ(account.notes, (std::vector<std::string>{"ranks 0, 1, 0.02 s: a line of both", "rank 1, 0.09 s: a late line"}));
  EXPECT_TRUE(time_table(account).ends_with("\nranks 0, 1, 0.02 s: a line of both\nrank 1, 0.09 s: a late line\n"));
}

TEST(Tables, tell_of_each_tensor_what_was_predicted_and_what_came) {
  const exchange::ExchangePlan plan = their_plan();
  EXPECT_EQ(tensor_table(account_of(two_members(), &plan)),
            "tensor          way   size   sent  on its way ms  predicted exposed ms  exposed ms  waited ms  hidden\n"
            "fc.weight      ring   4 KB   4 KB          70.00                 15.00       20.00      10.00   57.1%\n"
            "conv.weight  direct  100 B  100 B          10.00                  0.00        0.00       0.00  100.0%\n");
}

TEST(Tables, tell_of_each_link_how_fast_it_was) {
  RunEvents run = two_members();
  for (RankEvents& rank : run.ranks) {
    for (Event& event : rank.events) event.value *= 1000;  // 4 MB each way, in 260 ms, 20 MB/s over 100 ms
  }
  EXPECT_EQ(link_table(account_of(run, nullptr)),
            "link     MB  MB/s  MB in training  MB/s at its fastest there\n"
            "0 -> 1  4.0  15.4             4.0                       20.0\n"
            "1 -> 0  4.0  15.4             4.0                       20.0\n");
}

TEST(Tables, keep_the_tensors_with_the_most_exposed_time) {
  const exchange::ExchangePlan plan = their_plan();
  const std::string table = tensor_table(account_of(two_members(), &plan), 1);
  EXPECT_NE(table.find("fc.weight"), std::string::npos);
  EXPECT_EQ(table.find("conv.weight"), std::string::npos);
  EXPECT_NE(table.find("(1 more, each with less exposed time)\n"), std::string::npos);
}

}  // namespace
}  // namespace shoal::observe

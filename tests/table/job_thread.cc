// The thread beside the loop: jobs in order, rests between them, and an end that waits for all of them but for no rest.
#include "shoal/table/job_thread.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace shoal::table {
namespace {

TEST(JobThread, rests_as_long_as_others_work) {
  EXPECT_EQ(rest_after(Seconds(0.5), Seconds(2.5), Seconds(2)), Seconds(10));    // one other had a core all the time
  EXPECT_EQ(rest_after(Seconds(0.5), Seconds(1.5), Seconds(2)), Seconds(5));     // half of it
  EXPECT_EQ(rest_after(Seconds(0.5), Seconds(8.5), Seconds(2)), Seconds(10));    // four had: no longer for that
  EXPECT_EQ(rest_after(Seconds(0.5), Seconds(0.5), Seconds(2)), Seconds(0));     // none had
  EXPECT_EQ(rest_after(Seconds(0.5), Seconds(0.4), Seconds(2)), Seconds(0));     // clocks are read one after the other
  EXPECT_EQ(rest_after(Seconds(0), Seconds(0), Seconds(0)), Seconds(0));
}

// Goal: who ends it while jobs are left has all of them done, in order.
TEST(JobThread, ends_after_all_jobs) {
  for (const JobThread::Pace pace : {JobThread::Pace::prompt, JobThread::Pace::leisurely}) {
    std::vector<int> done;
    {
      JobThread thread(pace);
      for (int i = 0; i < 1000; ++i) thread.run([&done, i] { done.push_back(i); });
    }
    std::vector<int> all(1000);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(done, all);
  }
}

}  // namespace
}  // namespace shoal::table

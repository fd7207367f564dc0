// Sums of integers over members are right at each call, whatever was summed before, and whoever is early.
#include "shoal/learn/shared_counts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "shoal/core/seed.h"
#include "tests/net/members.h"

namespace shoal::learn {
namespace {

TEST(SharedCounts, SumsEachTimeWhatAllHaveNow) {
  constexpr std::uint32_t kWidth = 37, kCalls = 30;
  const auto number = [](std::uint64_t call, std::uint32_t rank, std::uint32_t i) {
    return static_cast<std::int64_t>(random_words(5, call, rank, i)[0]) - (1 << 30);
  };
  for (const net::Rank members : {1u, 2u, 3u}) {
    auto jobs = net::join_all(members);
    net::each(members, [&](net::Rank rank) {
      table::Tables tables(jobs[rank]->transport());
      table::Worker worker = tables.worker();
      SharedCounts counts(worker, "counts", kWidth);
      for (std::uint64_t call = 0; call < kCalls; ++call) {
        std::vector<std::int64_t> sums(kWidth), expected(kWidth);
        for (std::uint32_t i = 0; i < kWidth; ++i) {
          sums[i] = number(call, rank, i);
          for (net::Rank other = 0; other < members; ++other) expected[i] += number(call, other, i);
        }
        counts.sum(sums);
        ASSERT_EQ(sums, expected) << "call " << call << " of rank " << rank;
      }
      tables.leave();
    });
    net::leave_all(jobs);
  }
}

// What one has and others have not is everybody's, even as the bits of a number above 0.
TEST(SharedCounts, HandsOverBits) {
  auto jobs = net::join_all(2);
  net::each(2, [&](net::Rank rank) {
    table::Tables tables(jobs[rank]->transport());
    table::Worker worker = tables.worker();
    SharedCounts counts(worker, "bits", 1);
    for (const double value : {0.1, 1e300, 5e-324, 3.0, 1e-5}) {
      std::vector<std::int64_t> bits{rank == 0 ? std::bit_cast<std::int64_t>(value) : 0};
      counts.sum(bits);
      EXPECT_EQ(std::bit_cast<double>(bits[0]), value);
    }
    tables.leave();
  });
  net::leave_all(jobs);
}

}  // namespace
}  // namespace shoal::learn

#include "shoal/packing/channels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"

namespace shoal::packing {
namespace {

double ends(const std::vector<Channel>& channels, const std::vector<double>& data) {
  double last = 0;
  for (std::size_t j = 0; j < channels.size(); ++j) last = std::max(last, data[j] > 0 ? channels[j].fixed_seconds + data[j] / channels[j].rate : 0);
  return last;
}

// Goal: the paper's formula for PCIe beside NVLink. 22 and 5 GB/s, 500 MB, peer access switched in 2 ms.
TEST(Channels, two_are_the_paper_s_formula) {
  const std::vector<Channel> channels{{22e9, 0}, {5e9, 0.002}};
  const double d = 500e6, t = 0.002;
  const Split made = split(d, channels);
  EXPECT_NEAR(made.data[1], d * 5e9 / 27e9 - t * 22e9 * 5e9 / 27e9, 1);
  EXPECT_NEAR(made.data[0] + made.data[1], d, 1e-3);
  EXPECT_NEAR(made.data[0] / 22e9, 0.002 + made.data[1] / 5e9, 1e-12);   // both end at once
  EXPECT_EQ(split(40e6, channels).data[1], 0);                           // 1.8 ms over NVLink alone: done before PCIe begins
  EXPECT_EQ(split(40e6, channels).data[0], 40e6);
}

// Goal: no way to split ends earlier. Oracle: every set of channels made to end together, for random rates, costs and data.
TEST(Channels, nothing_ends_earlier) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    const std::uint32_t count = 1 + random_words(seed, 0, 0, 3)[0] % 6;
    std::vector<Channel> channels;
    for (std::uint32_t j = 0; j < count; ++j) channels.push_back({0.1 + uniform(seed, 1, j, 3), random_words(seed, 3, j, 3)[0] % 3 * uniform(seed, 2, j, 3)});
    const double data = 3 * uniform(seed, 4, 0, 3);
    double earliest = std::numeric_limits<double>::infinity();
    for (std::uint32_t set = 1; set < 1U << count; ++set) {
      double rates = 0, begun = 0, latest = 0;
      for (std::uint32_t j = 0; j < count; ++j) {
        if ((set >> j & 1) == 0) continue;
        rates += channels[j].rate;
        begun += channels[j].rate * channels[j].fixed_seconds;
        latest = std::max(latest, channels[j].fixed_seconds);
      }
      if (const double end = (data + begun) / rates; end >= latest) earliest = std::min(earliest, end);
    }
    const Split made = split(data, channels);
    EXPECT_NEAR(made.seconds, earliest, 1e-12 * earliest) << "seed " << seed;
    EXPECT_NEAR(ends(channels, made.data), made.seconds, 1e-12 * made.seconds) << "seed " << seed;
    EXPECT_NEAR(std::accumulate(made.data.begin(), made.data.end(), 0.0), data, 1e-9) << "seed " << seed;
  }
}

TEST(Channels, no_data_take_no_time) {
  const Split made = split(0, std::vector<Channel>{{1, 5}, {2, 0}});
  EXPECT_EQ(made.data, (std::vector<double>{0, 0}));
  EXPECT_EQ(made.seconds, 0);
}

TEST(Channels, what_makes_no_sense_is_refused) {
  const auto refusal = [](double data, const std::vector<Channel>& channels) -> std::string {
    try {
      split(data, channels);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(1, {}), "split: there is no channel");
  EXPECT_EQ(refusal(-1, {{1, 0}}), "split: -1 bytes of data");
  EXPECT_EQ(refusal(1, {{1, 0}, {0, 0}}), "split: channel 1 has a rate of 0");
  EXPECT_EQ(refusal(1, {{std::nan(""), 0}}), "split: channel 0 has a rate of nan");
  EXPECT_EQ(refusal(1, {{1, -2}}), "split: channel 0 begins after -2 s");
}

}  // namespace
}  // namespace shoal::packing

// Goal: whatever the overlay, each message comes to each member once, over links of the overlay only; fitted overlays spare slow links.
#include "shoal/factor/overlay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "shoal/core/error.h"

namespace shoal::factor {
namespace {

using Rank = Overlay::Rank;

// How often each link carries a message, when every member sends one; fails unless everybody has each once.
std::vector<unsigned> carried(const Overlay& overlay) {
  const Rank size = overlay.size();
  std::vector<unsigned> links(size * size);
  for (Rank origin = 0; origin < size; ++origin) {
    std::set<Rank> have = {origin};
    std::vector<Rank> to_pass_on = {origin};
    while (!to_pass_on.empty()) {
      const Rank at = to_pass_on.back();
      to_pass_on.pop_back();
      const auto targets = overlay.targets(at);
      for (const Rank to : overlay.next(origin, at)) {
        EXPECT_NE(std::find(targets.begin(), targets.end(), to), targets.end());
        EXPECT_EQ(overlay.before(origin, to), at);
        EXPECT_TRUE(have.insert(to).second);
        to_pass_on.push_back(to);
        ++links[at * size + to];
      }
    }
    EXPECT_EQ(have.size(), size);
  }
  return links;
}

TEST(Overlay, brings_everything_to_everybody_once) {
  for (const Rank size : {1, 2, 3, 4, 5, 7, 8, 12, 16, 40}) {
    SCOPED_TRACE(size);
    (void)carried(Overlay::full(size));
    const Overlay halton = Overlay::halton(size);
    (void)carried(halton);
    EXPECT_LE(halton.targets(0).size(), std::max<std::size_t>(1, static_cast<std::size_t>(std::bit_width(size - 1))));
    EXPECT_LE(halton.diameter(), 2u * static_cast<unsigned>(std::bit_width(size)));
    std::mt19937_64 random(size);
    std::vector<double> costs(size * size);
    for (double& cost : costs) cost = 1 + static_cast<double>(random() % 100);
    for (const Rank targets : {1u, 2u, 3u}) {
      const Overlay fitted = Overlay::fitted(size, targets, [&](Rank from, Rank to) { return costs[from * size + to]; });
      (void)carried(fitted);
      EXPECT_LE(fitted.targets(0).size(), targets);
    }
  }
}

// Goal: two racks of four with a slow link between them: what is fitted crosses once for each origin, where full crosses four times.
TEST(Overlay, fitted_crosses_a_slow_link_once_for_each_origin) {
  const auto cost = [](Rank from, Rank to) { return from / 4 == to / 4 ? 1.0 : 50.0; };
  const auto crossings = [](const Overlay& overlay) {
    const auto links = carried(overlay);
    unsigned sum = 0;
    for (Rank from = 0; from < 8; ++from) {
      for (Rank to = 0; to < 8; ++to) sum += from / 4 == to / 4 ? 0 : links[from * 8 + to];
    }
    return sum;
  };
  EXPECT_EQ(crossings(Overlay::full(8)), 32u);
  const Overlay fitted = Overlay::fitted(8, 3, cost);
  EXPECT_EQ(crossings(fitted), 8u);
  EXPECT_LT(fitted.total(), Overlay::fitted(8, 1, cost).total());
}

TEST(Overlay, nobody_without_a_target) { EXPECT_THROW(Overlay::fitted(4, 0, [](Rank, Rank) { return 1.0; }), Error); }

}  // namespace
}  // namespace shoal::factor

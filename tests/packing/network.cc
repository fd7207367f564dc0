#include "shoal/packing/network.h"

#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "tests/refusal.h"

namespace shoal::packing {
namespace {

topo::Topology pair() {
  topo::Topology topology;
  topology.name = "pair";
  topology.hosts = {"a", "b"};
  topology.links = {{0, 1, 2, Nanoseconds(0)}, {1, 0, 5, Nanoseconds(0)}, {0, 1, 3, Nanoseconds(0)}};
  return topology;
}

std::string refusal(const topo::Topology& topology) {
  return shoal::refusal([&] { Network network(topology); });
}

TEST(Network, parallel_links_are_one_arc) {
  const Network network(pair());
  ASSERT_EQ(network.arcs().size(), 2U);
  EXPECT_EQ(network.arcs()[network.arc(0, 1)].rate, 5);
  EXPECT_TRUE(network.symmetric());
  EXPECT_TRUE(network.direct());
  EXPECT_EQ(network.arc(1, 1), kNoArc);
}

TEST(Network, what_cannot_be_reached_is_named) {
  topo::Topology one_way = pair();
  one_way.links.resize(1);
  EXPECT_EQ(refusal(one_way), "topology pair: nothing leads from b to a");
  one_way.links[0] = {1, 0, 1, Nanoseconds(0)};
  EXPECT_EQ(refusal(one_way), "topology pair: nothing leads from a to b");
  EXPECT_EQ(refusal({}), "topology : there is no host");
}

}  // namespace
}  // namespace shoal::packing

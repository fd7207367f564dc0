// All ways in which a job can get 3 to 8 GPUs of a DGX-1 whose NVLinks connect them: 46 classes on V100, 14 on P100, the counts that Blink
// evaluates. Golden figures: exact linear programmes solved elsewhere (data/nvlink_allocation_classes.json, computed for this project).
#include <gtest/gtest.h>

#include "shoal/packing/pack.h"
#include "tests/packing/nvlink_allocations.h"

namespace shoal::packing {
namespace {

TEST(Nvlink, every_class_of_allocations_comes_to_its_golden_rates) {
  const auto golden = nvlink_classes(SHOAL_PACKING_DATA);
  ASSERT_EQ(golden.size(), 60U);
  for (const auto& entry : golden) {
    const Network network(allocation(entry));
    const std::string what = entry["machine"].get<std::string>() + " " + entry["gpus"].dump();
    const auto rate = [&](Demand demand, Node root = 0) { return pack_exactly(network, demand, root).rate; };
    const double all_reduce = fraction(entry["allreduce_rate"]), all_gather = fraction(entry["allgather_rate_uniform"]);
    EXPECT_NEAR(rate(Demand::all_reduce), all_reduce, 1e-5) << what;
    EXPECT_NEAR(rate(Demand::all_gather), all_gather, 1e-5) << what;
    EXPECT_NEAR(rate(Demand::reduce_scatter), all_gather, 1e-5) << what;
    Node root = 0;
    for (const auto& [gpu, broadcast] : entry["broadcast_rate_per_root"].items()) {
      EXPECT_NEAR(rate(Demand::broadcast, root++), broadcast.get<double>(), 1e-5) << what << " from " << gpu;
    }
    const Packing exact = pack_exactly(network, Demand::all_reduce);
    const Packing few = pack_few(network, Demand::all_reduce, 0, &exact);
    EXPECT_GE(few.efficiency(), 0.95) << what;
    EXPECT_LE(few.trees.size(), 16U) << what;
  }
}

}  // namespace
}  // namespace shoal::packing

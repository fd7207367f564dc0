// Simulated against executed: every builder's program run by the real Runner over the scripted network, whose clock is the measure, and in
// the simulator on the star that this network is. The scripted network sends frames of 16 KiB at the rate of the sender's link and takes
// them at that of the receiver's, so a byte is there its frame's time and the delay later.
#include <gtest/gtest.h>

#include "tests/collective/scripted_group.h"
#include "tests/sim/networks.h"

namespace shoal::sim {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kDelay = 100us;

double executed(const collective::Program& program, std::uint64_t elements) {
  net::ScriptedNetwork network;
  network.rate = kRate;
  network.delay_min = network.delay_max = kDelay;
  collective::ScriptedGroup group(program.ranks, network);
  collective::Exercise<float> exercise(program, elements, collective::small_number);
  const collective::Verified verified = collective::verify(program);
  collective::Run run;
  run.operation = 1;
  const Instant begin = group.job.now();
  for (const auto& runner : group.runners) exercise.start(*runner, verified, run);
  EXPECT_TRUE(group.job.run([&] { return exercise.all_done(); }));
  return seconds_between(begin, group.job.now());
}

double simulated(const collective::Program& program, std::uint64_t elements) {
  const Nanoseconds frame(static_cast<std::int64_t>(16 * 1024 / kRate * 1e9));
  Job one = job(program, 0);
  one.elements = elements;
  one.element_bytes = 4;
  Costs costs = Costs::links_only();
  costs.sending = Costs().sending;
  costs.receiving = Costs().receiving;
  return simulate_one(star(program.ranks, kRate, kDelay + frame), one, costs).seconds;
}

class Executed : public testing::TestWithParam<collective::Builder> {};

TEST_P(Executed, takes_what_the_simulator_says) {
  for (const std::uint32_t ranks : {2U, 4U, 5U, 8U}) {
    const collective::Program program = collective::build(GetParam().collective, GetParam().name, ranks);
    const std::uint64_t elements = 2'000'000;
    const double took = executed(program, elements), foreseen = simulated(program, elements);
    // Two trees meet in a host: the scripted network sends their slices as they come, the kernel shares the link evenly, which costs
    // the tree that is behind.
    const double apart = GetParam().name == "double_binary_tree" ? 0.2 : 0.05;
    EXPECT_NEAR(foreseen / took, 1, apart) << ranks << " ranks: executed " << took << " s, simulated " << foreseen << " s";
  }
}
INSTANTIATE_TEST_SUITE_P(Builders, Executed, testing::ValuesIn(collective::all_builders()), collective::title_of);

}  // namespace
}  // namespace shoal::sim

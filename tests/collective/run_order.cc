// A program adds in the order that it declares, bit for bit, whatever the slices, the network or the moment of starting.
// Floats of very different size, so that any other order shows. Oracles: plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "shoal/collective/run.h"
#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

float awkward(std::uint32_t rank, std::uint32_t chunk, std::uint64_t k) {
  const auto words = random_words(11, rank, chunk, static_cast<std::uint32_t>(k));
  const float mantissa = static_cast<float>(static_cast<std::int32_t>(words[0])) / 2147483648.0f;
  return std::ldexp(mantissa, static_cast<int>(words[1] % 24) - 12);
}

std::vector<std::vector<float>> outputs_of(const Verified& verified, std::uint64_t total, std::uint32_t slice_bytes,
                                           std::uint64_t seed, bool check_left = false, bool check_rotated = false) {
  const Program& program = verified.program();
  ScriptedGroup group(program.ranks, {.seed = seed, .eager = 4096});
  Exercise<float> exercise(program, total, awkward);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    collective::Run run;
    run.slice_bytes = slice_bytes;
    run.operation = 1;
    group.job.at(std::chrono::microseconds(random_words(seed, rank, 0, 1)[0] % 900),
                 [&, rank, run] { exercise.start(*group.runners[rank], verified, run); });
  }
  EXPECT_TRUE(group.job.run());
  if (check_left) exercise.expect_right(sum_in_rank_order);
  if (check_rotated) {
    exercise.expect_right([&](const std::vector<float>& given, std::uint32_t chunk) {
      const std::uint32_t first = owner(program, chunk) + 1;
      float sum = given[first % program.ranks];
      for (std::uint32_t i = 1; i < program.ranks; ++i) sum += given[(first + i) % program.ranks];
      return sum;
    });
  }
  std::vector<std::vector<float>> outputs;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) outputs.push_back(exercise.part(rank).output);
  return outputs;
}

std::vector<Builder> adding_builders() {
  std::vector<Builder> adding;
  for (const Builder& builder : all_builders()) {
    if (build(builder.collective, builder.name, 3).order != AddOrder::none) adding.push_back(builder);
  }
  return adding;
}

TEST(RunOrder, every_program_adds_in_the_order_it_declares) {
  int left = 0, rotated = 0;
  for (const Builder& builder : adding_builders()) {
    for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) {
      SCOPED_TRACE(title(builder) + " " + std::to_string(ranks));
      const Verified verified = verify(build(builder.collective, builder.name, ranks));
      const AddOrder order = verified.program().order;
      left += order == AddOrder::left_fold;
      rotated += order == AddOrder::rotated;
      outputs_of(verified, 501, 128, ranks, order == AddOrder::left_fold, order == AddOrder::rotated);
    }
  }
  EXPECT_GE(left, 9 * 4);     // the orders that have an oracle were met
  EXPECT_GE(rotated, 9 * 2);
}

// Slices of one element, of odd sizes, of everything; five networks: the same bits, on all members.
TEST(RunOrder, slices_and_the_network_never_change_a_bit) {
  for (const Builder& builder : adding_builders()) {
    for (std::uint32_t ranks : {3u, 4u, 6u}) {
      SCOPED_TRACE(title(builder) + " " + std::to_string(ranks));
      const Verified verified = verify(build(builder.collective, builder.name, ranks));
      const auto expected = outputs_of(verified, 257, 1 << 20, 1);
      std::uint64_t seed = 1;
      for (std::uint32_t slice_bytes : {4u, 20u, 64u, 300u, 1024u}) {
        EXPECT_EQ(outputs_of(verified, 257, slice_bytes, ++seed), expected) << "slice " << slice_bytes;
      }
      if (builder.collective != Collective::all_reduce) continue;
      for (const auto& output : expected) EXPECT_EQ(output, expected[0]);
    }
  }
}

}  // namespace
}  // namespace shoal::collective

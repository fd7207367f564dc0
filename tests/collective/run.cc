// The runner moves and adds what the program says. Oracle: one thread and a loop; whole numbers, so that every type and
// every order of addition gives the same bits.
#include "shoal/collective/run.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

using std::chrono::microseconds;

template <class T>
void run_once(const Verified& verified, std::uint64_t total, const Run& run, std::uint64_t seed) {
  const Program& program = verified.program();
  SCOPED_TRACE(title({program.collective, program.name}) + ", ranks " + std::to_string(program.ranks) + ", root " +
               std::to_string(program.root) + ", elements " + std::to_string(total) + ", slice " +
               std::to_string(run.slice_bytes) + ", " + name(run.type) + ", seed " + std::to_string(seed));
  ScriptedGroup group(program.ranks, {.seed = seed, .frame = 4096, .eager = 8192});
  Exercise<T> exercise(program, total, small_number);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    const auto late = microseconds(random_words(seed, rank, 0, 1)[0] % 500);
    group.job.at(late, [&, rank] { exercise.start(*group.runners[rank], verified, run); });
  }
  EXPECT_TRUE(group.job.run());
  exercise.expect_right(sum_in_rank_order);
}

Run run_of(DType type, std::uint32_t slice_bytes) {
  collective::Run run;
  run.type = type;
  run.slice_bytes = slice_bytes;
  run.operation = 7;
  return run;
}

class EveryBuilder : public testing::TestWithParam<Builder> {};

TEST_P(EveryBuilder, gives_every_member_its_result_for_every_size) {
  const Builder& builder = GetParam();
  for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) {
    const Verified verified = verify(build(builder.collective, builder.name, ranks, ranks > 1 ? 1 : 0));
    std::uint64_t seed = ranks;
    for (std::uint64_t total : {0u, 1u, 2u, 7u, ranks - 1, ranks, 64u, 1000u, 255u, 257u}) {
      run_once<std::int32_t>(verified, total, run_of(DType::i32, total < 100 ? 8 : 192), ++seed);
    }
    run_once<std::int32_t>(verified, 10007, run_of(DType::i32, 1000), ++seed);
  }
}

TEST_P(EveryBuilder, moves_floats_and_slices_of_one_element) {
  const Builder& builder = GetParam();
  for (std::uint32_t ranks : {2u, 3u, 5u}) {
    const Verified verified = verify(build(builder.collective, builder.name, ranks));
    run_once<float>(verified, 300, run_of(DType::f32, 128), ranks);
    run_once<double>(verified, 300, run_of(DType::f64, 128), ranks);
    run_once<std::uint8_t>(verified, 300, run_of(DType::u8, 1), ranks);
    run_once<std::int64_t>(verified, 300, run_of(DType::i64, 4), ranks);
  }
}

TEST_P(EveryBuilder, runs_at_urgent_priority_whatever_its_slice) {
  const Builder& builder = GetParam();
  const Verified verified = verify(build(builder.collective, builder.name, 4));
  collective::Run run = run_of(DType::i32, 1 << 20);
  run.priority.cls = net::Class::urgent;
  run_once<std::int32_t>(verified, 3000, run, 3);
}

INSTANTIATE_TEST_SUITE_P(Run, EveryBuilder, testing::ValuesIn(all_builders()), title_of);

// Twenty collectives at once; every member starts them in an order of its own, whenever it likes.
TEST(Run, many_operations_share_the_links_in_any_order) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    constexpr std::uint32_t kRanks = 4;
    ScriptedGroup group(kRanks, {.seed = seed, .eager = 4096});
    std::vector<Verified> programs;
    std::vector<Exercise<std::int64_t>> exercises;
    const auto builders = all_builders();
    for (std::size_t i = 0; i < 20; ++i) {
      programs.push_back(verify(build(builders[i % builders.size()].collective, builders[i % builders.size()].name, kRanks)));
      exercises.emplace_back(programs.back().program(), 100 + 997 * i, small_number);
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      std::vector<std::size_t> order(programs.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), std::mt19937_64(seed * 100 + rank));
      for (std::size_t i : order) {
        collective::Run run = run_of(DType::i64, 2048);
        run.operation = 1000 + i;
        run.priority.value = static_cast<std::uint32_t>(i % 3);
        const auto late = microseconds(random_words(seed, rank, static_cast<std::uint32_t>(i), 2)[0] % 3000);
        group.job.at(late, [&, rank, i, run] { exercises[i].start(*group.runners[rank], programs[i], run); });
      }
    }
    EXPECT_TRUE(group.job.run());
    for (const auto& exercise : exercises) exercise.expect_right(sum_in_rank_order);
    for (const auto& runner : group.runners) EXPECT_TRUE(runner->waiting().empty());
  }
}

// A group is any subset of the job's members in any order; its ranks are their places.
TEST(Run, a_group_may_be_part_of_the_job) {
  net::InprocJob job(6);
  const std::vector<net::Rank> members{4, 1, 5};
  const Verified verified = verify(build(Collective::all_gather, "ring", 3));
  Exercise<std::int32_t> exercise(verified.program(), 1000, small_number);
  std::vector<std::unique_ptr<Runner>> runners;
  for (net::Rank member : members) {
    runners.push_back(std::make_unique<Runner>(job.member(member), members));
    exercise.start(*runners.back(), verified, run_of(DType::i32, 256));
  }
  EXPECT_EQ(runners[2]->rank(), 2u);
  EXPECT_TRUE(job.run());
  exercise.expect_right(sum_in_rank_order);
  EXPECT_EQ(job.bytes_sent(4, 0) + job.bytes_sent(1, 3), 0u);
}

// Chunks as the caller cuts them: nothing from one member, much from another, gaps between.
TEST(Run, chunks_may_have_any_size_and_place) {
  const Verified verified = verify(build(Collective::all_gather, "direct", 3));
  ScriptedGroup group(3);
  const Layout layout{{0, 5, 300}, {0, 2, 0}, {0, 10, 20}};
  std::vector<std::vector<std::int32_t>> inputs{{}, {-1, -1, 1, 2, 3, 4, 5}, std::vector<std::int32_t>(300, 9)};
  std::vector<std::vector<std::int32_t>> outputs(3, std::vector<std::int32_t>(320, 77));
  int done = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    group.runners[rank]->start(
        verified, layout,
        {reinterpret_cast<const std::byte*>(inputs[rank].data()), reinterpret_cast<std::byte*>(outputs[rank].data())},
        run_of(DType::i32, 64), [&done](const net::Failure& why) { done += why ? 100 : 1; });
  }
  EXPECT_TRUE(group.job.run());
  EXPECT_EQ(done, 3);
  std::vector<std::int32_t> expected(320, 77);
  std::iota(expected.begin() + 10, expected.begin() + 15, 1);
  std::fill(expected.begin() + 20, expected.end(), 9);
  for (const auto& output : outputs) EXPECT_EQ(output, expected);
}

// mean = (sum of weight_r * g_r) / (sum of weights), every member; the division is done once, by whoever completes.
TEST(Run, a_weighted_mean_is_a_prescaled_sum_divided_once) {
  const double weights[] = {3, 0, 5, 1};
  for (const std::string& name : builder_names(Collective::all_reduce)) {
    SCOPED_TRACE(name);
    const Verified verified = verify(build(Collective::all_reduce, name, 4));
    ScriptedGroup group(4);
    Exercise<float> exercise(verified.program(), 5000, small_number);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      collective::Run run = run_of(DType::f32, 512);
      run.scaling = {weights[rank], 9};
      exercise.start(*group.runners[rank], verified, run);
    }
    EXPECT_TRUE(group.job.run());
    exercise.expect_right([&](const std::vector<float>& given, std::uint32_t) {
      float sum = 0;
      for (std::size_t rank = 0; rank < 4; ++rank) sum += static_cast<float>(weights[rank]) * given[rank];
      return sum / 9.0f;
    });
  }
}

TEST(Run, an_average_divides_by_the_members_and_integers_truncate) {
  for (const Builder& builder : all_builders()) {
    if (builder.collective != Collective::all_reduce && builder.collective != Collective::reduce_scatter &&
        builder.collective != Collective::reduce)
      continue;
    for (std::uint32_t ranks : {1u, 3u, 6u}) {
      SCOPED_TRACE(builder.name + std::to_string(ranks));
      const Verified verified = verify(build(builder.collective, builder.name, ranks));
      ScriptedGroup group(ranks);
      Exercise<std::int32_t> exercise(verified.program(), 700, small_number);
      collective::Run run = run_of(DType::i32, 256);
      run.op = ReduceOp::average;
      for (const auto& runner : group.runners) exercise.start(*runner, verified, run);
      EXPECT_TRUE(group.job.run());
      exercise.expect_right([&](const auto& given, std::uint32_t chunk) {
        return sum_in_rank_order(given, chunk) / static_cast<std::int32_t>(ranks);
      });
    }
  }
}

TEST(Run, minimum_and_product_are_taken_over_all_members) {
  for (const std::string& name : builder_names(Collective::all_reduce)) {
    SCOPED_TRACE(name);
    const Verified verified = verify(build(Collective::all_reduce, name, 5));
    for (ReduceOp op : {ReduceOp::min, ReduceOp::product}) {
      ScriptedGroup group(5);
      Exercise<std::int64_t> exercise(verified.program(), 333, small_number);
      collective::Run run = run_of(DType::i64, 256);
      run.op = op;
      for (const auto& runner : group.runners) exercise.start(*runner, verified, run);
      EXPECT_TRUE(group.job.run());
      exercise.expect_right([&](const std::vector<std::int64_t>& given, std::uint32_t) {
        std::int64_t result = given[0];
        for (std::size_t i = 1; i < given.size(); ++i)
          result = op == ReduceOp::min ? std::min(result, given[i]) : result * given[i];
        return result;
      });
    }
  }
}

// One memory for contribution and result, with every program that verify() allows it for.
TEST(Run, input_and_output_may_be_one_memory_where_the_program_allows_it) {
  int in_place = 0;
  for (const Builder& builder : all_builders()) {
    for (std::uint32_t ranks : {1u, 2u, 5u}) {
      const Verified verified = verify(build(builder.collective, builder.name, ranks));
      if (!verified.in_place()) continue;
      SCOPED_TRACE(title(builder) + ", ranks " + std::to_string(ranks));
      ++in_place;
      ScriptedGroup group(ranks, {.seed = ranks, .eager = 4096});
      Exercise<std::int32_t> exercise(verified.program(), 3001, small_number);
      exercise.use_one_memory();
      for (const auto& runner : group.runners) exercise.start(*runner, verified, run_of(DType::i32, 512));
      EXPECT_TRUE(group.job.run());
      exercise.expect_right(sum_in_rank_order);
    }
  }
  EXPECT_GT(in_place, 5);
}

// Payload of a direct all-reduce: 2(N-1)/N of the vector from every member.
TEST(Run, direct_sends_the_bytes_of_its_formula) {
  constexpr std::uint32_t kRanks = 4, kTotal = 40'000;
  const Verified verified = verify(build(Collective::all_reduce, "direct", kRanks));
  ScriptedGroup group(kRanks);
  Exercise<float> exercise(verified.program(), kTotal, small_number);
  for (const auto& runner : group.runners) exercise.start(*runner, verified, run_of(DType::f32, 16384));
  EXPECT_TRUE(group.job.run());
  for (net::Rank from = 0; from < kRanks; ++from) {
    std::uint64_t bytes = 0;
    for (net::Rank to = 0; to < kRanks; ++to) bytes += group.job.bytes_sent(from, to);
    EXPECT_EQ(bytes, 2 * (kRanks - 1) * kTotal * 4 / kRanks);
  }
}

TEST(Run, done_never_runs_inside_start) {
  const Verified verified = verify(build(Collective::all_reduce, "direct", 1));
  ScriptedGroup group(1);
  Exercise<std::int32_t> exercise(verified.program(), 100, small_number);
  exercise.start(*group.runners[0], verified, run_of(DType::i32, 64));
  EXPECT_EQ(exercise.part(0).done, 0);
  EXPECT_TRUE(group.job.run());
  exercise.expect_right(sum_in_rank_order);
}

TEST(Run, refuses_a_program_or_layout_for_another_group) {
  ScriptedGroup group(2);
  const Verified of_three = verify(build(Collective::all_reduce, "ring", 3)),
                 of_two = verify(build(Collective::all_reduce, "ring", 2));
  const auto line = [&](const Verified& program, const Layout& layout) -> std::string {
    collective::Run run;
    run.label = "all-reduce of fc1.weight";
    try {
      group.runners[0]->start(program, layout, {}, run, [](const net::Failure&) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(line(of_three, Layout::even(of_three.program(), 0, 5)),
            "all-reduce of fc1.weight: a program for 3 members in a group of 2");
  EXPECT_EQ(line(of_two, {{1}, {0}, {0}}), "all-reduce of fc1.weight: the layout must name all 2 chunks of ring");
  EXPECT_THROW(Runner(group.job.member(0), {1}), Error);
}

}  // namespace
}  // namespace shoal::collective

// What the verifier proves adds up, whatever the program is. Method: programs of the builders, changed at random in one to three places (waits taken out or put
// in, ops in another order, lanes cut or joined, sites, copies); those that are still proved are run on scripted networks with small slices, and
// every member must have the exact sum. Whether the verifier refuses too much is seen in build.cc and rings.cc.
#include <gtest/gtest.h>

#include <optional>

#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "tests/collective/in_few.h"
#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

class Chances {
 public:
  explicit Chances(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::size_t count) { return random_words(seed_, 0, 0, drawn_++)[0] % static_cast<std::uint32_t>(std::max<std::size_t>(count, 1)); }

 private:
  std::uint64_t seed_;
  std::uint32_t drawn_ = 0;
};

void change(Program& program, Chances& chances) {
  auto& lanes = program.lanes[chances.below(program.ranks)];
  const std::uint32_t l = chances.below(lanes.size()), other = chances.below(lanes.size());
  if (lanes[l].empty() || lanes[other].empty()) return;
  const std::uint32_t at = chances.below(lanes[l].size());
  const After wait{other, chances.below(lanes[other].size()), static_cast<std::int32_t>(chances.below(3)) - 1};
  Op& op = lanes[l][at].ops[0];
  const auto everywhere = [&](const auto& act) {  // to the same op of all members
    for (auto& ranks : program.lanes) {
      if (l < ranks.size() && at < ranks[l].size()) act(ranks[l][at].ops[0]);
    }
  };
  switch (chances.below(9)) {
    case 0:
      if (!op.after.empty()) op.after.erase(op.after.begin() + chances.below(op.after.size()));
      break;
    case 1:
      if (!op.after.empty()) op.after[chances.below(op.after.size())].shift += wait.shift;
      break;
    case 2: op.after.push_back(wait); break;
    case 3:
      if (at + 1 < lanes[l].size()) std::swap(lanes[l][at], lanes[l][at + 1]);
      break;
    case 4:
      if (!op.sources.empty()) op.sources[chances.below(op.sources.size())].buffer = chances.below(2) == 0 ? Buffer::input : Buffer::output;
      break;
    case 5: {
      const Op copied{OpKind::copy, 0, 0, 0, chances.below(program.chunks), 0, {{Buffer::input, 0}}, {Buffer::output, 0}, false, {wait}};
      lanes[l].insert(lanes[l].begin() + at, {1, {copied}});
      break;
    }
    case 6: {                                     // the rest of a lane as one of its own
      const Lane rest(lanes[l].begin() + at, lanes[l].end());
      lanes[l].resize(at);
      lanes.push_back(rest);
      break;
    }
    case 7: everywhere([](Op& same) { same.after.clear(); }); break;
    default: everywhere([&](Op& same) { same.after.push_back(wait); });
  }
}

std::optional<Verified> proved(const Program& program) {
  try {
    return verify(program);
  } catch (const Error&) {
    return {};
  }
}

TEST(VerifyChanged, what_is_proved_adds_up) {
  const std::vector<std::string> names = builder_names(Collective::all_reduce);
  std::uint32_t run_and_right = 0, proved_in_few = 0;
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    Chances chances(seed);
    Program program = build(Collective::all_reduce, names[chances.below(names.size())], 2 + chances.below(5));
    for (std::uint32_t changes = 1 + chances.below(3); changes > 0; --changes) change(program, chances);
    const auto verified = proved(program);
    SCOPED_TRACE(program.name + " of " + std::to_string(program.ranks) + ", seed " + std::to_string(seed));
    if (is_proved_in_few(program)) {
      ASSERT_TRUE(verified) << "a few stood for others that are not like them";
      ++proved_in_few;
    }
    if (!verified) continue;
    ScriptedGroup group(program.ranks, {.seed = seed, .eager = 64});
    Exercise<float> exercise(program, 211, small_number);
    if (verified->in_place() && seed % 2 == 0) exercise.use_one_memory();
    collective::Run run;
    run.slice_bytes = 16;
    run.operation = 1;
    for (auto& runner : group.runners) exercise.start(*runner, *verified, run);
    ASSERT_TRUE(group.job.run()) << "it came to a stand";
    exercise.expect_right(sum_in_rank_order);
    ASSERT_FALSE(testing::Test::HasFailure());
    ++run_and_right;
  }
  EXPECT_GT(run_and_right, 300U);
  EXPECT_GT(proved_in_few, 50U);
}

}  // namespace
}  // namespace shoal::collective

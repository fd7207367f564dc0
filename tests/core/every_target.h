// A fixture that runs a test once on each SIMD target that this CPU has and the room was compiled for.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

inline std::vector<std::int64_t> targets_here() { return hwy::SupportedAndGeneratedTargets(); }

inline std::string target_name(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

inline void choose_target(std::int64_t target) {  // 0: the best one again
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

class EveryTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { choose_target(GetParam()); }
  void TearDown() override { choose_target(0); }
};

}  // namespace shoal

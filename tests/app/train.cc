// `shoal train`: which Python is started with which words. A script stands in for Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

namespace fs = std::filesystem;

// Answers the question what is missing with `missing`, and repeats every other command line.
Program::Variables python_without(const Folder& folder, const std::string& missing) {
  folder.write("python",
               "#!/bin/sh\nif [ \"$1\" = -c ]; then echo '" + missing + "'; else echo \"$@\"; fi\n");
  fs::permissions(folder.path() / "python", fs::perms::owner_all);
  return {{"SHOAL_PYTHON", folder.path() / "python"}};
}

TEST(train, alone_it_becomes_python_with_the_flags_that_were_given) {
  const Folder folder;
  const auto outcome =
      shoal(folder, {"train", "fcnet", "--epochs", "2", "--json", "--resume", "--checkpoint", "c", "--data", "d"}, python_without(folder, ""));
  EXPECT_EQ(outcome.out, "-m shoal.train fcnet --data d --epochs 2 --checkpoint c --resume --json\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
}

TEST(train, with_members_it_is_a_run_named_after_the_model) {
  const Folder folder;
  const auto outcome = shoal(folder, {"train", "lenet", "-n", "1", "--lr", "0.01"}, python_without(folder, ""));
  EXPECT_EQ(outcome.out, "[0] -m shoal.train lenet --lr 0.01\n");
  EXPECT_THAT(folder.only_run().filename().string(), testing::EndsWith("-lenet"));
}

// The variable is also that of a run that begins again: it asks for no checkpoints where there are none.
TEST(train, it_is_told_by_the_environment_to_resume_where_there_are_checkpoints) {
  const Folder folder;
  auto variables = python_without(folder, "");
  variables["SHOAL_RESUME"] = "1";
  EXPECT_EQ(shoal(folder, {"train", "fcnet"}, variables).out, "-m shoal.train fcnet\n");
  EXPECT_EQ(shoal(folder, {"train", "fcnet", "--checkpoint", "c"}, variables).out, "-m shoal.train fcnet --checkpoint c --resume\n");
}

// Goal: what shoal.train says of its flags is said once, and nobody is started. The stand-in lacks nothing, and refuses all flags that it is to read.
TEST(train, a_wrong_flag_is_refused_before_members_start) {
  const Folder folder;
  folder.write("python", "#!/bin/sh\n[ \"$1\" = -c ] || echo started\n[ $# -le 2 ] || { echo 'shoal: --batch: is wrong (so)' >&2; exit 2; }\n");
  fs::permissions(folder.path() / "python", fs::perms::owner_all);
  const auto outcome = shoal(folder, {"train", "lenet", "-n", "2", "--batch", "0"}, {{"SHOAL_PYTHON", folder.path() / "python"}});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "--batch: is wrong (so)\n");
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
}

TEST(train, a_model_that_does_not_exist_is_refused_before_python_starts) {
  const Folder folder;
  const auto outcome = shoal(folder, {"train", "resnet"}, {{"SHOAL_PYTHON", "/no/python"}});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, testing::StartsWith("resnet: there is no such model (lenet, fcnet, "));
  EXPECT_THAT(outcome.err, testing::EndsWith("char-transformer)\n"));
}

TEST(train, a_python_without_torch_is_refused_in_one_line) {
  const Folder folder;
  const auto outcome = shoal(folder, {"train", "fcnet"}, python_without(folder, "torch"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            (folder.path() / "python").string() +
                ": lacks torch (make build, or SHOAL_PYTHON=/path/to/a/python with PyTorch and shoal)\n");
  const auto none = shoal(folder, {"train", "fcnet"}, {{"SHOAL_PYTHON", "/no/python"}});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.err, "SHOAL_PYTHON: command not found: /no/python\n");
}

}  // namespace
}  // namespace shoal::app::test

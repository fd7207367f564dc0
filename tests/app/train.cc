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

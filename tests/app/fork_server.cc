// Which commands members can be forked of: those that Python's own flags, a script or a module say wholly. What forked members do is in python/tests/test_fork_server.py.
#include "app/fork_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ForkServer, a_script_and_a_module_keep_their_flags_and_words) {
  EXPECT_THAT(forking({"python", "train.py"}).value(), ElementsAre("python", "-c", HasSubstr("fork_server.serve("), "train.py"));
  EXPECT_THAT(forking({"/opt/venv/bin/python3.11", "-u", "-W", "error", "-Xdev", "-OO", "-m", "package.train", "-m", "--", "a b"}).value(),
              ElementsAre("/opt/venv/bin/python3.11", "-u", "-W", "error", "-Xdev", "-OO", "-c", HasSubstr("serve("), "-m", "package.train", "-m", "--", "a b"));
}

TEST(ForkServer, code_of_the_command_line_comes_behind_the_servers) {
  EXPECT_THAT(forking({"python3", "-u", "-c", "pass", "-c", "word"}).value(), ElementsAre("python3", "-u", "-c", HasSubstr("serve("), "-c", "pass", "-c", "word"));
}

TEST(ForkServer, what_is_anything_else_starts_cold) {
  const std::vector<std::vector<std::string>> others{{"sh", "train.py"},         {"python"},           {"python", "-u"},        {"python", "-c"}, {"python", "-m"},
                                  {"python", "-i", "t.py"},   {"python", "folder"}, {"pythonic", "train.py"}, {"python2", "train.py"},  {"python", "-"},
                                  {"python", "-S", "train.py"}, {"env", "python", "train.py"}, {"python", "-W"}, {"python", "-X", "dev"}};
  for (const auto& words : others) EXPECT_FALSE(forking(words)) << testing::PrintToString(words);
}

}  // namespace
}  // namespace shoal::app

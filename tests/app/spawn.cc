// Tools that Shoal runs end, whatever they do with their outputs.
#include "app/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "shoal/core/error.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(RunTool, says_what_the_tool_said_and_how_it_ended) {
  const ToolResult result = run_tool({"sh", "-c", "echo yes; echo no >&2; exit 7"});
  EXPECT_EQ(result.out, "yes\n");
  EXPECT_EQ(result.err, "no\n");
  EXPECT_EQ(result.status, 7);
}

TEST(RunTool, a_tool_that_takes_too_long_is_ended) {
  const ToolResult result = run_tool({"sleep", "3600"}, 50ms);
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("ended: it took too long"));
}

TEST(RunTool, so_is_one_that_has_closed_its_outputs) {
  const ToolResult result = run_tool({"sh", "-c", "echo so far; exec >&- 2>&-; exec sleep 3600"}, 300ms);
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("ended: it took too long"));
}

TEST(RunTool, a_tool_that_is_not_there_is_named) {
  try {
    run_tool({"no-such-tool"});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("no-such-tool cannot be started"));
  }
}

}  // namespace
}  // namespace shoal::app

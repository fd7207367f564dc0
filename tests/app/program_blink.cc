// `shoal program build --mode blink` and `show --svg` as people call them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Program, is_built_as_blink_does_verified_and_drawn) {
  const Folder folder;
  ASSERT_EQ(shoal(folder, {"topo", "generate", "torus", "3x3", "--rate", "1gbit", "-o", "t.json"}).status, 0);
  const auto built = shoal(folder, {"program", "build", "t.json", "--mode", "blink", "--collective", "broadcast", "-o", "b.json"});
  EXPECT_THAT(built.out, StartsWith("b.json: blink of 9 members, 4 chunks, 4 Gbit/s of a bound of 4 Gbit/s (100.0 %), ")) << built.err;
  EXPECT_THAT(shoal(folder, {"program", "verify", "b.json", "--topology", "t.json"}).out,
              HasSubstr("certificate: 4 Gbit/s by its ops, of a bound of 4 Gbit/s by its prices: 100.00 %\n"));
  EXPECT_EQ(shoal(folder, {"program", "show", "b.json", "--svg", "b.svg", "--topology", "t.json"}).status, 0);
  const std::string drawing = read_file(folder.path() / "b.svg");
  EXPECT_THAT(drawing, StartsWith("<svg "));
  EXPECT_THAT(drawing, HasSubstr("chunk 3: 25 %, 1 Gbit/s"));
  EXPECT_EQ(shoal(folder, {"program", "show", "ring", "-n", "4", "--svg", "r.svg"}).status, 0);
  EXPECT_THAT(read_file(folder.path() / "r.svg"), HasSubstr("4 chunks, each the whole way round"));
}

TEST(Program, drawings_and_modes_that_cannot_be_have_their_line) {
  const Folder folder;
  ASSERT_EQ(shoal(folder, {"topo", "generate", "star", "2", "--rate", "1gbit", "-o", "s.json"}).status, 0);
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "program");
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_EQ(refusal({"build", "s.json", "--mode", "blink", "--collective", "all_gather"}),
            "blink: no trees are packed for all_gather (all_reduce, broadcast or reduce)\n");
  EXPECT_EQ(refusal({"show", "ring", "-n", "3", "--svg", "r.svg", "--topology", "s.json"}), "star_2: 2 hosts for a program of 3 ranks\n");
  EXPECT_EQ(refusal({"show", "ring", "-n", "2", "--topology", "s.json"}), "--topology: is of use with --svg\n");
  folder.write("x.json", "{\"v\": 2}");
  EXPECT_EQ(refusal({"show", "x.json", "--svg", "x.svg"}), "x.json: $.v: a whole number from 1 to 1 is expected\n");
}

}  // namespace
}  // namespace shoal::app::test

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

// 16 x 16 chips with a hole: the circuit and the rings of rows are made, proved and certified from the file alone; a torus is not what it is.
TEST(Program, goes_round_a_hole_that_the_file_has) {
  const Folder folder;
  ASSERT_EQ(shoal(folder, {"topo", "generate", "mesh", "16x16", "--dead", "4,10:2x2", "--rate", "1gbit", "-o", "m.json"}).status, 0);
  for (const auto& [mode, name] : {std::pair("mesh-ring", "mesh_ring"), std::pair("row-pair", "row_pair")}) {
    const auto built = shoal(folder, {"program", "build", "m.json", "--mode", mode, "-o", "p.json"});
    EXPECT_THAT(built.out, StartsWith(std::string("p.json: ") + name + " of 252 members, ")) << built.err;
    EXPECT_THAT(shoal(folder, {"program", "verify", "p.json"}).out, StartsWith(std::string(name) + " all_reduce on 252 members: every contribution once"));
  }
  const auto refused = shoal(folder, {"program", "build", "m.json", "--mode", "torus"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "topology mesh_16x16: is a grid of 16 x 16 with dead chips (mesh_ring goes round them)\n");
}

TEST(Program, auto_takes_the_quickest_and_shows_what_else_there_was) {
  const Folder folder;
  ASSERT_EQ(shoal(folder, {"topo", "generate", "torus", "4x4", "--rate", "1gbit", "-o", "t.json"}).status, 0);
  const auto built = shoal(folder, {"program", "build", "t.json", "-o", "p.json"});
  EXPECT_THAT(built.out, StartsWith("p.json: torus of 16 members, ")) << built.err;
  EXPECT_THAT(built.out, testing::ContainsRegex("\n64MB: torus [0-9.]+ ms, "));
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
  EXPECT_EQ(refusal({"build", "s.json", "--root", "1"}), "--root: all_reduce has none (broadcast, reduce, gather and scatter do)\n");
  EXPECT_EQ(refusal({"build", "s.json", "-o", "no/such.json"}), "no/such.json: cannot be written: No such file or directory\n");
  folder.write("x.json", "{\"v\": 2}");
  EXPECT_EQ(refusal({"show", "x.json", "--svg", "x.svg"}), "x.json: $.v: only version 1 is known\n");
}

TEST(Program, a_cache_that_somebody_said_and_that_cannot_be_is_refused) {
  const Folder folder;
  ASSERT_EQ(shoal(folder, {"topo", "generate", "star", "2", "--rate", "1gbit", "-o", "s.json"}).status, 0);
  const auto refused = shoal(folder, {"program", "build", "s.json", "--mode", "trees"}, {{"SHOAL_CACHE", "s.json"}});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "SHOAL_CACHE: cannot make s.json/programs: Not a directory (a folder, or none: nothing is kept)\n");
}

}  // namespace
}  // namespace shoal::app::test

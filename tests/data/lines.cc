// Goal: lines come as they stand in the files, with their places, whatever breaks them and wherever blocks end. Oracle: what was written.
#include "shoal/data/lines.h"

#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;

class LinesTest : public Files {
 protected:
  using Placed = std::vector<std::string>;  // "file:line text"
  Placed read(std::vector<fs::path> files, std::size_t longest = Lines::kLongest) const {
    Lines lines(std::move(files), longest);
    Placed placed;
    for (std::string_view line; lines.next(line);) placed.push_back(lines.place().substr(folder_.string().size() + 1) + " " + std::string(line));
    return placed;
  }
};

TEST_F(LinesTest, have_their_places_in_their_files) {
  EXPECT_EQ(read({file("a", "one\ntwo\n"), file("b", ""), file("c", "\nthree")}), (Placed{"a:1 one", "a:2 two", "c:1 ", "c:2 three"}));
  EXPECT_EQ(read({file("a", "")}), Placed{});
}

TEST_F(LinesTest, end_as_on_any_system) {
  EXPECT_EQ(read({file("a", "one\r\ntwo\r\n\r\nthree\r")}), (Placed{"a:1 one", "a:2 two", "a:3 ", "a:4 three"}));
  EXPECT_EQ(read({file("a", "a\rb\n")}), Placed{"a:1 a\rb"});
}

TEST_F(LinesTest, begin_behind_the_byte_order_mark) {
  EXPECT_EQ(read({file("a", "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo")}), (Placed{"a:1 one", "a:2 \xEF\xBB\xBFtwo"}));
}

TEST_F(LinesTest, are_the_same_packed) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::string(static_cast<std::size_t>(i % 83), 'x') + std::to_string(i) + "\n";
  const auto plain = read({file("a", text)});
  ASSERT_EQ(plain.size(), 100'000u);
  EXPECT_EQ(plain.back(), "a:100000 " + std::string(99'999 % 83, 'x') + "99999");
  for (const auto& [name, pack] : kPackers) EXPECT_TRUE(read({file("a", pack(text))}) == plain) << name;
}

// Blocks are 256 KB: lines that end just before, at and after the end of one, and lines of many blocks.
TEST_F(LinesTest, cross_blocks) {
  for (const std::size_t length : {262'142u, 262'143u, 262'144u, 262'145u, 524'288u, 3'000'000u}) {
    for (const char* line_break : {"\n", "\r\n"}) {
      const std::string line(length, 'y');
      EXPECT_TRUE(read({file("a", line + line_break + "next" + line_break + line)}) == (Placed{"a:1 " + line, "a:2 next", "a:3 " + line})) << length;
    }
  }
}

TEST_F(LinesTest, a_line_has_a_limit) {
  const std::string longest(1'000'000, 'z');
  for (const char* line_break : {"", "\n", "\r\n"}) {
    EXPECT_EQ(read({file("a", "x\n" + longest + line_break)}, longest.size()).size(), 2u);
    EXPECT_EQ(refusal([&] { read({file("a", "x\n" + longest + "z" + line_break)}, longest.size()); }),
              "a:2: the line is longer than 1 MB (is this a text file with line breaks?)");
  }
  EXPECT_EQ(refusal([&] { read({file("a", "\n" + longest + longest + longest)}, longest.size()); }),
            "a:2: the line is longer than 1 MB (is this a text file with line breaks?)");
}

TEST_F(LinesTest, bytes_that_are_no_text_are_refused_with_their_line) {
  EXPECT_EQ(refusal([&] { read({file("a", std::string("one\ntwo\nth\0ree", 14))}); }),
            "a:3: has a zero byte, so it is no text (UTF-8 text is read, also packed by gzip, bzip2, xz or zstd)");
  std::string later;
  for (int i = 0; i < 100'000; ++i) later += "line\n";
  EXPECT_EQ(refusal([&] { read({file("a", later + '\0')}); }).substr(0, 9), "a:100001:");
}

TEST_F(LinesTest, can_be_looked_at_before_they_are_given) {
  const std::vector<fs::path> files = {file("a", "one\ntwo\n"), file("b", "three\n"), file("c", "four")};
  for (const std::size_t most : {0u, 1u, 2u, 3u, 4u, 9u}) {
    Lines lines(files);
    std::string_view line;
    ASSERT_TRUE(lines.next(line));
    EXPECT_EQ(lines.ahead(most).size(), std::min<std::size_t>(most, 3));
    EXPECT_EQ(lines.ahead(most / 2).size(), std::min<std::size_t>(most, 3)) << "they stay";
    EXPECT_EQ(lines.number(), 1u);
    for (const auto& [text, place] : {std::pair("two", "a:2"), {"three", "b:1"}, {"four", "c:1"}}) {
      ASSERT_TRUE(lines.next(line));
      EXPECT_EQ(line, text);
      EXPECT_EQ(without_folder(lines.place()), place);
    }
    EXPECT_FALSE(lines.next(line));
    EXPECT_EQ(without_folder(lines.place()), "c:1");
  }
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::string(100, 'x') + "\n";
  Lines long_file({file("a", text)});
  EXPECT_LE(long_file.ahead(100'000).size(), 11'000u);
}

TEST_F(LinesTest, at_least_one_file_is_named) {
  EXPECT_EQ(refusal([&] { read({}); }), "no file to read");
}

}  // namespace
}  // namespace shoal::data

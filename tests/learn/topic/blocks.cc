// Blocks that come back from a file are those that went, with what was changed in them, in whatever order they are asked for.
#include "shoal/learn/topic/blocks.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kBlockWords = 50, kBlockTopics = 9, kBlocks = 5;

bool same(const Block& a, const Block& b) {
  const auto same_runs = [](const Block::Run& x, const Block::Run& y) { return x.place == y.place && x.begin == y.begin; };
  return a.shift == b.shift && std::ranges::equal(a.runs, b.runs, same_runs) && a.slices == b.slices && a.lines == b.lines && a.topics == b.topics &&
         a.positions == b.positions && a.first_line == b.first_line && a.longest_table == b.longest_table && a.first_long == b.first_long &&
         a.first_whole == b.first_whole &&
         std::ranges::equal(std::span(a.tables.data(), a.tables.size()), std::span(b.tables.data(), b.tables.size()));
}

TEST(Blocks, ComeBackAsTheyWereLeft) {
  const text::Documents documents = random_documents(100, kBlockWords, 40, 3);
  const Slicing slicing(frequencies_of(documents, kBlockWords), kBlockTopics, 3);
  const auto parts = parts_of(documents, 0, documents.size(), kBlocks);
  Blocks blocks(kBlocks, testing::TempDir());
  std::vector<Block> expected;
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    expected.emplace_back(documents, parts[b], parts[b + 1], slicing, kBlockTopics);
    blocks.append(Block(documents, parts[b], parts[b + 1], slicing, kBlockTopics), parts[b]);
  }
  EXPECT_EQ(blocks.tokens(), documents.tokens());
  for (std::uint32_t visit = 0; visit < 60; ++visit) {
    const auto drawn = random_words(8, visit, 0, 0);
    const std::uint32_t b = visit < 20 ? visit % kBlocks : drawn[0] % kBlocks;
    Block& block = blocks.enter(b);
    ASSERT_TRUE(same(block, expected[b])) << "visit " << visit << ", block " << b;
    if (drawn[1] % 3 == 0) continue;
    for (Block* changing : {&block, &expected[b]}) {
      for (std::uint32_t token = 0; token < changing->tokens(); ++token) changing->topics[token] = random_words(9, visit, token, 0)[0] % kBlockTopics;
      changing->count();
    }
    blocks.changed();
  }
}

TEST(Blocks, DivideDocumentsByTheirTokens) {
  const text::Documents documents = random_documents(1000, kBlockWords, 40, 5);
  for (const std::uint32_t parts : {1u, 2u, 7u, 300u}) {
    const auto begins = parts_of(documents, 10, 900, parts);
    ASSERT_EQ(begins.size(), parts + 1);
    EXPECT_EQ(begins.front(), 10u);
    EXPECT_EQ(begins.back(), 900u);
    EXPECT_TRUE(std::ranges::is_sorted(begins));
    const std::uint64_t even = (documents.offsets[900] - documents.offsets[10]) / parts;
    for (std::uint32_t part = 0; part < parts; ++part) EXPECT_LE(documents.offsets[begins[part + 1]] - documents.offsets[begins[part]], even + 80);
  }
  for (const std::size_t begin : {std::size_t{0}, std::size_t{1000}}) {  // no document at all
    EXPECT_EQ(parts_of(documents, begin, begin, 3), std::vector<std::size_t>(4, begin));
  }
  EXPECT_EQ(parts_of(text::Documents(), 0, 0, 2), std::vector<std::size_t>(3, 0));
}

TEST(Blocks, SayThatTheDiskIsFull) {
  const text::Documents documents = random_documents(400, kBlockWords, 60, 3);
  const Slicing slicing(frequencies_of(documents, kBlockWords), kBlockTopics, 2);
  Blocks blocks(4, testing::TempDir());
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);  // then the write fails, as on a full disk
  struct rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string said;
  try {
    for (std::size_t block = 0; block < 4; ++block) blocks.append(Block(documents, 100 * block, 100 * (block + 1), slicing, kBlockTopics), 100 * block);
  } catch (const Error& error) {
    said = error.what();
    EXPECT_EQ(error.code(), Code::io);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_THAT(said, testing::HasSubstr("blocks of documents cannot be written: File too large"));
}

TEST(Blocks, SayWhereNoFileCanBeMade) {
  try {
    Blocks blocks(3, "/nowhere/at/all");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_EQ(error.fact(), "no file can be made here: No such file or directory");
    EXPECT_EQ(error.where(), "/nowhere/at/all");
  }
}

}  // namespace
}  // namespace shoal::learn::topic

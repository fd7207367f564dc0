// Goal: documents are what was appended, in memory and in files. Oracle: lists of lists.
#include "shoal/text/corpus.h"

#include <gmock/gmock.h>

#include "tests/data/files.h"

namespace shoal::text {
namespace {

using CorpusFiles = data::test::Files;

TEST_F(CorpusFiles, documents_are_what_was_appended_in_memory_and_in_files) {
  Documents memory, disk = Documents::in(folder_);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "the file has no name";
  std::vector<std::vector<std::uint32_t>> given;
  for (std::uint32_t d = 0; d < 60'000; ++d) {  // more than is written at once
    given.emplace_back(d % 11, d);
    memory.append(given.back());
    disk.append(given.back());
  }
  memory.finish();
  disk.finish();
  const Documents copy = disk;
  disk = Documents();
  for (const Documents* documents : {&std::as_const(memory), &copy}) {
    ASSERT_EQ(documents->size(), given.size());
    EXPECT_EQ(documents->tokens(), documents->words().size());
    for (std::size_t d = 0; d < given.size(); ++d) ASSERT_THAT((*documents)[d], testing::ElementsAreArray(given[d])) << d;
  }
}

TEST_F(CorpusFiles, others_are_kept_where_these_are) {
  const std::uint32_t word = 7;
  for (const bool on_disk : {false, true}) {
    Documents given = on_disk ? Documents::in(folder_) : Documents(), others = given.none_alike();
    given.append({&word, 1});
    given.finish();
    others.append({&word, 1});
    EXPECT_EQ(others.words().size(), on_disk ? 0u : 1u) << "in a file they are there when it is whole";
    others.finish();
    EXPECT_THAT(others[0], testing::ElementsAre(7));
  }
}

TEST_F(CorpusFiles, none_is_a_corpus_too) {
  Documents disk = Documents::in(folder_);
  disk.finish();
  EXPECT_EQ(disk.size(), 0u);
  EXPECT_EQ(disk.tokens(), 0u);
  EXPECT_EQ(disk.words().size(), 0u);
}

TEST_F(CorpusFiles, lists_of_words_are_documents_and_empty_ones_stay) {
  const std::vector<std::vector<std::string>> lists = {{"tea", "cup", "tea"}, {}, {"cup", "pot"}};
  const Corpus all = corpus_of(lists);
  EXPECT_EQ(all.documents.size(), 3u);
  EXPECT_THAT(all.documents[0], testing::ElementsAre(0, 1, 0));
  EXPECT_THAT(all.documents[1], testing::IsEmpty());
  EXPECT_THAT(all.frequencies, testing::ElementsAre(2, 2, 1));
  EXPECT_EQ(all.all_tokens, 5u);
  data::Names known;
  known.number("pot");
  known.number("never");
  const Corpus some = corpus_of(lists, &known);
  EXPECT_THAT(some.documents[0], testing::IsEmpty());
  EXPECT_THAT(some.documents[2], testing::ElementsAre(0));
  EXPECT_THAT(some.frequencies, testing::ElementsAre(1, 0));
}

}  // namespace
}  // namespace shoal::text

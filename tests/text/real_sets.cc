// Goal: real corpora are read as those who described them count them. Oracle: the figures of their descriptions. SHOAL_DATA names the folder of the
// sets, where this machine has them.
#include <gtest/gtest.h>

#include "shoal/text/source.h"
#include "tests/data/real_sets.h"

namespace shoal::text {
namespace {

TEST_F(RealSets, bags_of_words) {
  struct Set {
    const char* file;
    std::uint64_t documents, words, tokens;
  };
  for (const Set& set : {Set{"docword.ossprose.txt.gz", 246'835, 46'942, 7'184'873}, Set{"docword.ossweek.txt.gz", 5'425, 32'701, 5'448'448},
                         Set{"docword.20ng_etm.tr.txt.gz", 11'214, 3'072, 919'850}, Set{"docword.20ng_etm.ts.txt.gz", 7'531, 3'072, 594'276}}) {
    const Reading reading = read_corpus({.files = {folder_ / "lda" / set.file}}, {1, 4}).second;
    EXPECT_EQ(reading.documents, set.documents) << set.file;
    EXPECT_EQ(reading.words, set.words) << set.file;
    EXPECT_EQ(reading.tokens, set.tokens) << set.file;
  }
}

// The same documents in two formats have words equally often.
TEST_F(RealSets, words_in_text_order) {
  const Corpus bag = read_corpus({.files = {folder_ / "lda/docword.ossprose.txt.gz"}}).first;
  const Corpus text = read_corpus({.files = {folder_ / "lda/ossprose.tokens.txt.xz"}, .format = Format::yahoo}).first;
  ASSERT_EQ(text.all_documents, 246'835u);
  ASSERT_EQ(text.vocabulary.size(), bag.vocabulary.size());
  for (std::uint32_t word = 0; word < bag.vocabulary.size(); ++word) {
    const auto there = text.vocabulary.find(bag.vocabulary[word]);
    ASSERT_TRUE(there) << bag.vocabulary[word];
    ASSERT_EQ(text.frequencies[*there], bag.frequencies[word]) << bag.vocabulary[word];
  }
  for (std::size_t d = 0; d < 246'835; d += 1000) ASSERT_EQ(text.documents[d].size(), bag.documents[d].size()) << d;
}

TEST_F(RealSets, plain_text) {
  const Reading glosses = read_corpus({.files = {folder_ / "lda/wordnet_glosses.tsv.gz"}}).second;
  EXPECT_EQ(glosses.documents + glosses.empty, 117'659u);
  EXPECT_EQ(glosses.form, "column 4 between tabs");
  const Reading news = read_corpus({.files = {folder_ / "lda/octis/BBC_News.corpus.tsv.gz"}}).second;
  EXPECT_EQ(news.documents, 2'225u);
}

}  // namespace
}  // namespace shoal::text

// Goal: MALLET's state gives tokens, topics and priors, and seed words are found in a vocabulary; mistakes are one line. Oracle: by hand.
#include <gmock/gmock.h>

#include "shoal/text/mallet_state.h"
#include "shoal/text/seed_words.h"
#include "tests/text/corpora.h"

namespace shoal::text {
namespace {

using namespace test;
using testing::ElementsAre;
using States = Corpora;
using Lists = std::vector<Words>;

const std::string kHeader = "#doc source pos typeindex type topic\n#alpha : 0.5 0.25 \n#beta : 0.01\n";

TEST_F(States, mallets_state_is_tokens_topics_and_priors) {
  const std::string text = kHeader + "0 file:/a b 0 0 tea 1\n0 file:/a b 1 1 cup 0\n2 NA 0 0 tea 1\n";
  const MalletState state = read_mallet_state(file("state.gz", data::test::gzip(text)));
  EXPECT_EQ(words_of(state.corpus), (Lists{{"tea", "cup"}, {"tea"}}));
  EXPECT_THAT(state.topics, ElementsAre(1, 0, 1));
  EXPECT_THAT(state.prior.alpha, ElementsAre(0.5, 0.25));
  EXPECT_EQ(state.prior.beta, 0.01);
  EXPECT_THAT(state.corpus.names, ElementsAre("file:/a b", "2"));
  EXPECT_EQ(sentence(state.reading), "read 2 documents of 2 words, 3 tokens, from state.gz, MALLET's state; dropped: 1 empty document");
  EXPECT_EQ(read("state", text), (Lists{{"tea", "cup"}, {"tea"}})) << "as a format among others";
}

TEST_F(States, mistakes_in_a_state_are_named_with_their_place) {
  const std::string form = "a line is: doc source pos typeindex type topic";
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"0 NA 0 0 tea\n", "a:4: '0 NA 0 0 tea' is no token (" + form + ")"},
           {"0 NA 0 0 tea x\n", "a:4: '0 NA 0 0 tea x' is no token (" + form + ")"},
           {"x NA 0 0 tea 1\n", "a:4: 'x NA 0 0 tea 1' is no token (" + form + ")"},
           {"0 0 0 tea 1\n", "a:4: '0 0 0 tea 1' is no token (" + form + ")"},
           {"0 NA 0 0 tea 2\n", "a:4: there is no topic 2 (the header has alpha of 2 topics, from 0)"},
           {"1 NA 0 0 tea 1\n0 NA 0 0 tea 1\n", "a:5: document 0 stands after 1 (tokens of a document stand together)"},
       }) {
    EXPECT_EQ(refusal([&] { read_mallet_state(file("a", kHeader + text)); }), said);
  }
  EXPECT_EQ(refusal([&] { read_mallet_state(file("a", "#alpha : 0.5 x\n")); }), "a:1: 'x' is no prior (numbers above 0 stand behind the colon)");
  EXPECT_EQ(refusal([&] { read_mallet_state(file("a", "0 NA 0 0 tea 1073741824\n")); }), "a:1: topic 1073741824 is beyond 1073741823 (" + form + ")");
  EXPECT_EQ(refusal([&] { read_mallet_state(file("a", kHeader)); }), "a: no document has a word that is kept (nothing dropped)");
}

TEST_F(States, seed_words_are_numbers_and_unknown_ones_are_named) {
  data::Names vocabulary;
  for (const char* word : {"tea", "cup", "kernel"}) vocabulary.number(word);
  const auto path = file("seeds", "# drinks\n0\ttea cup milk\n\n2 kernel milk tea # again\n");
  const SeedWords words = read_seed_words(path, vocabulary, 3);
  EXPECT_THAT(words.seeds, ElementsAre(SeedWords::Seed{0, 0}, SeedWords::Seed{0, 1}, SeedWords::Seed{2, 2}, SeedWords::Seed{2, 0}));
  EXPECT_EQ(sentence(words), "4 seed words of 2 topics; the vocabulary has no 'milk'");
  const auto refused_seeds = [&](const std::string& text) { return refusal([&] { read_seed_words(file("seeds", text), vocabulary, 3); }); };
  EXPECT_EQ(refused_seeds("3 tea\n"), "seeds:1: there is no topic 3 (topics count from 0 to 2)");
  EXPECT_EQ(refused_seeds("tea cup\n"), "seeds:1: 'tea cup' does not begin with a topic (a line is: topic, from 0, and its words)");
  EXPECT_EQ(refused_seeds("1 milk\n"), "seeds: has no word that the vocabulary has (a line is: topic, from 0, and its words)");
}

}  // namespace
}  // namespace shoal::text

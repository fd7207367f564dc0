// Goal: vocabulary rules keep and drop what they say, count what they drop, and join pairs. Oracle: a plain program over lists of words, and cases by
// hand.
#include "shoal/text/rules.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/text/corpora.h"

namespace shoal::text {
namespace {

using namespace test;
using testing::ElementsAre;
using Lists = std::vector<Words>;
class Rules : public Corpora {
 protected:
  static Source with(VocabularyRules rules) {
    Source source{.format = Format::yahoo};
    source.rules = std::move(rules);
    return source;
  }
  static std::string text_of(const Lists& documents) {
    std::string text;
    for (std::size_t d = 0; d < documents.size(); ++d) {
      text += "d " + std::to_string(d + 1);
      for (const auto& word : documents[d]) text += " " + word;
      text += "\n";
    }
    return text;
  }
};

// Words of unequal frequency.
Lists made_up_lists(std::size_t count) {
  std::mt19937 random(9);
  Lists documents(count);
  for (Words& document : documents) {
    for (std::size_t i = 1 + random() % 15; i > 0; --i) document.push_back("w" + std::to_string(random() % (1 + random() % 60)));
  }
  return documents;
}

TEST(Limit, is_a_number_or_a_share) {
  EXPECT_EQ(parse_limit("5"), (DocumentLimit{5, false}));
  EXPECT_EQ(parse_limit("0.5"), (DocumentLimit{0.5, true}));
  EXPECT_EQ(parse_limit("1.0"), (DocumentLimit{1, true}));
  EXPECT_EQ(parse_limit("50%"), (DocumentLimit{0.5, true}));
  EXPECT_EQ(to_text(parse_limit("0.5")), "50 %");
  EXPECT_EQ(to_text(parse_limit("5")), "5");
  for (const char* text : {"", "x", "-1", "1.5", "101%", "5 ", "nan", "1e3"}) EXPECT_THROW(parse_limit(text), Error) << text;
}

TEST_F(Rules, vocabulary_and_documents_are_those_of_a_plain_program) {
  const Lists all = made_up_lists(400);
  std::map<std::string, std::set<std::size_t>> in;
  std::map<std::string, std::uint64_t> tokens;
  Words order;  // as words come
  for (std::size_t d = 0; d < all.size(); ++d) {
    for (const auto& word : all[d]) {
      if (tokens[word]++ == 0) order.push_back(word);
      in[word].insert(d);
    }
  }
  for (const VocabularyRules& rules :
       {VocabularyRules{.min_documents = {30, false}}, VocabularyRules{.min_documents = {0.1, true}, .max_documents = {0.3, true}},
        VocabularyRules{.top_words = 7}, VocabularyRules{.most_words = 11},
        VocabularyRules{.min_documents = {5, false}, .max_documents = {150, false}, .top_words = 3, .most_words = 20}}) {
    Words left;
    for (const auto& word : order) {
      const auto documents = static_cast<double>(in[word].size());
      if (documents >= rules.min_documents.of(all.size()) && documents <= rules.max_documents.of(all.size())) left.push_back(word);
    }
    std::stable_sort(left.begin(), left.end(), [&](const auto& a, const auto& b) { return tokens[a] > tokens[b]; });
    left.erase(left.begin(), left.begin() + rules.top_words);
    if (rules.most_words > 0 && left.size() > rules.most_words) left.resize(rules.most_words);
    const std::set<std::string> kept(left.begin(), left.end());
    Lists expected;
    for (const Words& document : all) {
      expected.emplace_back();
      for (const auto& word : document) {
        if (kept.contains(word)) expected.back().push_back(word);
      }
      if (expected.back().empty()) expected.pop_back();
    }
    EXPECT_EQ(read("a", text_of(all), with(rules)), expected);

    const Source source = [&] {
      Source made = with(rules);
      made.files = {folder_ / "a"};
      return made;
    }();
    const auto [corpus, reading] = read_corpus(source);
    EXPECT_EQ(reading.empty, all.size() - expected.size());
    std::uint64_t words = corpus.vocabulary.size(), dropped = corpus.all_tokens, tokens_in_all = 0;
    for (const auto& one : reading.dropped) {
      words += one.words;
      dropped += one.tokens;
    }
    for (const auto& [word, count] : tokens) tokens_in_all += count;
    EXPECT_EQ(words, order.size()) << "each word is kept or dropped for one reason";
    EXPECT_EQ(dropped, tokens_in_all);
    for (std::uint32_t word = 0; word < corpus.vocabulary.size(); ++word) {
      EXPECT_EQ(corpus.frequencies[word], tokens[std::string(corpus.vocabulary[word])]);
    }
    std::size_t shared = 0;
    for (std::uint32_t member = 0; member < 3; ++member) {
      const Corpus part = read_corpus(source, {member, 3}).first;
      EXPECT_EQ(part.all_documents, expected.size());
      EXPECT_EQ(part.frequencies, corpus.frequencies);
      shared += part.documents.size();
    }
    EXPECT_EQ(shared, expected.size());
  }
}

TEST_F(Rules, what_is_dropped_is_said) {
  EXPECT_EQ(
      said("a", "d 1 tea cup tea\nd 2 tea pot\nd 3 rim\n", with({.stop_words = file("stops", "pot\n").string(), .min_documents = {2, false}})),
      "read 2 documents of 1 word, 3 tokens, from a, words behind two names; dropped: 1 empty document, 1 stop word (1 token), 2 words in fewer "
      "than 2 documents (2 tokens)");
  EXPECT_EQ(
      said("a", "d 1 tea cup tea rim\nd 2 tea pot cup\n", with({.max_documents = {0.9, true}, .most_words = 1})),
      "read 1 document of 1 word, 1 token, from a, words behind two names; dropped: 1 empty document, 2 words in more than 90 % of the documents (5 "
      "tokens), 1 word beyond the 1 most frequent (1 token)");
}

TEST_F(Rules, words_that_a_model_does_not_know_are_counted) {
  data::Names known;
  for (const char* word : {"cup", "tea", "never"}) known.number(word);
  Source source = with({.min_documents = {100, false}});  // which a model has done
  source.vocabulary = &known;
  source.files = {file("a", "d 1 tea pot pot cup\nd 2 rim\n")};
  const auto [corpus, reading] = read_corpus(source);
  EXPECT_EQ(words_of(corpus), (Lists{{"tea", "cup"}}));
  EXPECT_THAT(vocabulary_of(corpus), ElementsAre("cup", "tea", "never"));
  EXPECT_THAT(corpus.frequencies, ElementsAre(1, 1, 0));
  EXPECT_EQ(dropped(reading), "dropped: 1 empty document, 2 words that the model does not know (3 tokens)");
}

TEST_F(Rules, a_model_knows_stop_words_that_it_has) {
  data::Names known;
  known.number("the");
  Source source{.files = {file("a", "the tea of it\n")}, .vocabulary = &known};
  const auto [corpus, reading] = read_corpus(source);
  EXPECT_EQ(words_of(corpus), (Lists{{"the"}}));
  EXPECT_EQ(dropped(reading), "dropped: 2 stop words (2 tokens), 1 word that the model does not know (1 token)");
}

TEST_F(Rules, frequent_pairs_stand_for_both_words_from_left_to_right) {
  const std::string text = "d 1 new york new york city\nd 2 york new\nd 3 city of new york\n";
  const VocabularyRules rules{.stop_words = file("stops", "of\n").string(), .pairs = Pairs::frequent, .pair_tokens = 2};
  EXPECT_EQ(read("a", text, with(rules)), (Lists{{"new_york", "new_york", "city"}, {"york_new"}, {"city", "new_york"}}));
  EXPECT_THAT(said("a", text, with(rules)), testing::HasSubstr("; 2 frequent pairs stand for two words in 4 places; dropped: 1 stop word (1 token)"));
  const VocabularyRules three{.pairs = Pairs::frequent, .pair_tokens = 3};
  EXPECT_EQ(read("a", text, with(three)), (Lists{{"new_york", "new_york", "city"}, {"york", "new"}, {"city", "of", "new_york"}}));
}

TEST_F(Rules, all_pairs_are_words_but_for_those_with_a_stop_word) {
  const std::string text = "d 1 tea cup of tea cup\nd 2 pot\n";
  const auto stops = file("stops", "of\n").string();
  EXPECT_EQ(read("a", text, with({.stop_words = stops, .pairs = Pairs::all})), (Lists{{"tea_cup", "tea_cup"}}));
  EXPECT_EQ(read("a", text, with({.pairs = Pairs::all})), (Lists{{"tea_cup", "cup_of", "of_tea", "tea_cup"}}));
  EXPECT_EQ(read("a", text, with({.min_documents = {1, false}, .most_words = 1, .pairs = Pairs::all})), (Lists{{"tea_cup", "tea_cup"}}));
}

TEST_F(Rules, a_models_pairs_are_joined_as_they_were) {
  const Lists all = made_up_lists(300);
  Source source = with({.min_documents = {3, false}, .pairs = Pairs::frequent, .pair_tokens = 8});
  source.files = {file("a", text_of(all))};
  const Corpus trained = read_corpus(source).first;
  source.vocabulary = &trained.vocabulary;
  const auto [again, reading] = read_corpus(source);
  // Pairs that occur often and in too few documents are no words of the model; theirs stay single.
  EXPECT_EQ(again.all_documents, trained.all_documents);
  source.rules = {.pairs = Pairs::all};
  source.vocabulary = nullptr;
  const Corpus pairs = read_corpus(source).first;
  source.vocabulary = &pairs.vocabulary;
  EXPECT_EQ(words_of(read_corpus(source).first), words_of(pairs));
}

TEST_F(Rules, bags_have_no_pairs_but_those_of_a_model) {
  const std::string bag = "1\n2\n2\n1 1 1\n1 2 1\n";
  Source source{.words_file = file("words", "tea\ntea_cup\n"), .rules = {.pairs = Pairs::all}};
  EXPECT_EQ(refused("a", bag, source), "a: is a bag of words, in which none follows another (leave pairs of words out)");
  data::Names known;
  known.number("tea_cup");
  source.vocabulary = &known;
  EXPECT_EQ(read("a", bag, source), (Lists{{"tea_cup"}}));
}

TEST_F(Rules, rules_apply_to_bags_as_to_text) {
  const Source source{.words_file = file("words", "tea\ncup\npot\n"),
                      .rules = {.stop_words = file("stops", "cup\n").string(), .min_documents = {2, false}}};
  EXPECT_EQ(
      said("a", "2\n3\n4\n1 1 2\n1 2 1\n2 1 1\n2 3 1\n", source),
      "read 2 documents of 1 word, 3 tokens, from a, UCI's bag of words with the words of words; dropped: 1 stop word (1 token), 1 word in fewer "
      "than 2 documents (1 token)");
}

}  // namespace
}  // namespace shoal::text

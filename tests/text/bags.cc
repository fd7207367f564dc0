// Goal: bags of words in the formats of other programs become the documents that they say, and each mistake in them one line that says where and what
// to do. Oracle: documents written out by hand, and documents made up, written in each format and read again.
#include "shoal/text/bags.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "tests/text/corpora.h"

namespace shoal::text {
namespace {

using namespace test;
using testing::ElementsAre;
using Bags = Corpora;
using Bag = std::map<std::uint32_t, std::uint32_t>;  // word, from 0, to count

constexpr std::uint32_t kWords = 40;

// None of them is empty: formats differ in whether they have such documents at all.
std::vector<Bag> made_up_bags(std::size_t count) {
  std::mt19937 random(5);
  std::vector<Bag> bags(count);
  for (Bag& bag : bags) {
    for (std::size_t i = 1 + random() % 12; i > 0; --i) bag[random() % kWords] += 1 + random() % 3;
  }
  return bags;
}

std::string words_text() {
  std::string text;
  for (std::uint32_t word = 0; word < kWords; ++word) text += "w" + std::to_string(word) + "\n";
  return text;
}

std::vector<Words> expanded(const std::vector<Bag>& bags) {
  std::vector<Words> documents;
  for (const Bag& bag : bags) {
    documents.emplace_back();
    for (const auto& [word, count] : bag) documents.back().insert(documents.back().end(), count, "w" + std::to_string(word));
  }
  return documents;
}

std::size_t entries_of(const std::vector<Bag>& bags) {
  std::size_t entries = 0;
  for (const Bag& bag : bags) entries += bag.size();
  return entries;
}

std::string as_uci(const std::vector<Bag>& bags) {
  std::string text = std::to_string(bags.size()) + "\n" + std::to_string(kWords) + "\n" + std::to_string(entries_of(bags)) + "\n";
  for (std::size_t d = 0; d < bags.size(); ++d) {
    for (const auto& [word, count] : bags[d]) text += std::to_string(d + 1) + " " + std::to_string(word + 1) + " " + std::to_string(count) + "\n";
  }
  return text;
}

std::string as_matrix(const std::vector<Bag>& bags) {  // columns first, as some programs write them
  std::string text = "%%MatrixMarket matrix coordinate integer general\n% made up\n" + std::to_string(bags.size()) + " " + std::to_string(kWords) +
                     " " + std::to_string(entries_of(bags)) + "\n";
  for (std::uint32_t word = 0; word < kWords; ++word) {
    for (std::size_t d = 0; d < bags.size(); ++d) {
      if (bags[d].contains(word)) text += std::to_string(d + 1) + " " + std::to_string(word + 1) + " " + std::to_string(bags[d].at(word)) + "\n";
    }
  }
  return text;
}

std::string as_counts(const std::vector<Bag>& bags, Format format) {
  std::string text;
  for (std::size_t d = 0; d < bags.size(); ++d) {
    text += format == Format::lda_c ? std::to_string(bags[d].size()) : "doc" + std::to_string(d);
    char between = format == Format::lightlda ? '\t' : ' ';
    for (const auto& [word, count] : bags[d]) {
      text += between + std::to_string(word + (format == Format::libsvm ? 1 : 0)) + ":" + std::to_string(count);
      between = ' ';
    }
    text += "\n";
  }
  return text;
}

TEST_F(Bags, what_is_written_in_any_format_packed_or_not_is_read_again) {
  const auto bags = made_up_bags(300);
  const Source source{.words_file = file("words", words_text())};
  for (const auto& [format, text] : std::vector<std::pair<Format, std::string>>{{Format::uci, as_uci(bags)},
                                                                                {Format::matrix_market, as_matrix(bags)},
                                                                                {Format::lda_c, as_counts(bags, Format::lda_c)},
                                                                                {Format::libsvm, as_counts(bags, Format::libsvm)},
                                                                                {Format::lightlda, as_counts(bags, Format::lightlda)}}) {
    EXPECT_EQ(read("a", text, source), expanded(bags)) << name(format) << ", told from its lines";
    Source forced = source;
    forced.format = format;
    EXPECT_EQ(read("a", text, forced), expanded(bags)) << name(format);
    for (const auto& [packer, pack] : data::test::kPackers)
      EXPECT_EQ(read("a", pack(text), source), expanded(bags)) << name(format) << ", " << packer;
  }
}

TEST_F(Bags, members_share_the_documents_and_agree_on_all_else) {
  const auto bags = made_up_bags(100);
  const Source source{.files = {file("a", as_uci(bags))}, .words_file = file("words", words_text())};
  const Corpus all = read_corpus(source).first;
  std::map<std::string, Words> given;
  for (std::uint32_t member = 0; member < 3; ++member) {
    const auto [corpus, reading] = read_corpus(source, {member, 3});
    EXPECT_EQ(corpus.frequencies, all.frequencies);
    EXPECT_EQ(vocabulary_of(corpus), vocabulary_of(all));
    EXPECT_EQ(corpus.all_documents, 100u);
    EXPECT_EQ(corpus.all_tokens, all.documents.tokens());
    EXPECT_EQ(reading.kept, corpus.documents.size());
    const auto documents = words_of(corpus);
    for (std::size_t d = 0; d < documents.size(); ++d) EXPECT_TRUE(given.emplace(corpus.names[d], documents[d]).second) << "given twice";
  }
  const auto documents = words_of(all);
  ASSERT_EQ(given.size(), 100u);
  for (std::size_t d = 0; d < documents.size(); ++d) EXPECT_EQ(given.at(all.names[d]), documents[d]);
}

TEST_F(Bags, words_are_called_by_the_file_beside_or_by_their_numbers) {
  const auto docword = file("docword.a.train.txt", "3\n2\n2\n1 1 2\n3 2 1\n");
  const auto [numbers, plain] = read_corpus({.files = {docword}});
  EXPECT_EQ(words_of(numbers), (std::vector<Words>{{"1", "1"}, {"2"}}));
  EXPECT_EQ(without_folder(sentence(plain)),
            "read 2 documents of 2 words, 3 tokens, from docword.a.train.txt, UCI's bag of words whose words are called by their numbers; dropped: 1 "
            "empty document");
  file("vocab.a.txt", "tea\ncup\n");
  const auto [named, reading] = read_corpus({.files = {docword}});
  EXPECT_EQ(words_of(named), (std::vector<Words>{{"tea", "tea"}, {"cup"}}));
  EXPECT_THAT(named.names, ElementsAre("1", "3"));
  EXPECT_THAT(sentence(reading), testing::HasSubstr("UCI's bag of words with the words of vocab.a.txt"));
}

TEST_F(Bags, words_that_no_document_has_are_in_the_vocabulary_nevertheless) {
  const auto [corpus, reading] = read_corpus({.files = {file("a", "1\n3\n1\n1 3 2\n")}, .words_file = file("words", "a\nb\nc\n")});
  EXPECT_THAT(vocabulary_of(corpus), ElementsAre("a", "b", "c"));
  EXPECT_THAT(corpus.frequencies, ElementsAre(0, 0, 2));
}

TEST_F(Bags, dictionaries_with_numbers_are_words_too) {
  const Source source{.words_file = file("words", "1\tcup\t7\n0\ttea\t9\n")};
  EXPECT_EQ(read("a", "x\t0:1 1:2\n", source), (std::vector<Words>{{"tea", "cup", "cup"}}));
}

TEST_F(Bags, a_dictionary_of_gensim_begins_with_the_number_of_its_documents) {
  const Source source{.words_file = file("words", "17\n1\tcup\t7\n0\ttea pot\t9\n")};
  EXPECT_EQ(read("a", "x\t0:1 1:2\n", source), (std::vector<Words>{{"tea_pot", "cup", "cup"}}));
}

TEST_F(Bags, words_files_that_cannot_be_right_are_refused) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"a\nb\na\n", "words:3: 'a' is there twice, first in line 1 (each word has one number)"},
           {"a\n\nb\n", "words:2: has no word (a line is a word; numbers of words count lines)"},
           {"", "words: has no word (is it the right file?)"},
           {"0\ta\n2\tb\n", "words:2: number 2 stands after 0 (each number has one word, without gaps)"},
           {"1\ta\n1\tb\n", "words:2: number 1 is there twice (each number has one word, without gaps)"},
           {"0\ta\nb\n", "words:2: has no number and word, as the first line does (a line is: number<TAB>word)"},
       }) {
    EXPECT_EQ(refused("a", "1\n2\n1\n1 1 1\n", {.words_file = file("words", text)}), said);
  }
}

TEST_F(Bags, mistakes_in_uci_are_named_with_their_place) {
  const Source two{.format = Format::uci, .words_file = file("words", "tea\ncup\n")};
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "a: does not say how many documents there are (the first three lines are the numbers of documents, words and entries)"},
           {"1\nx\n", "a:2: does not say how many words there are (the first three lines are the numbers of documents, words and entries)"},
           {"1\n3\n1\n1 1 1\n", "a:2: says there are 3 words (words has 2)"},
           {"1\n2\n1\n1 3 1\n", "a:4: there is no word 3 (words count from 1 to the 2 of line 2)"},
           {"1\n2\n1\n1 0 1\n", "a:4: there is no word 0 (words count from 1 to the 2 of line 2)"},
           {"1\n2\n1\n2 1 1\n", "a:4: there is no document 2 (documents count from 1 to the 1 of line 1)"},
           {"2\n2\n2\n2 1 1\n1 1 1\n", "a:5: document 1 stands after 2 (documents ascend: sort the lines by them)"},
           {"1\n2\n1\n1 1\n", "a:4: '1 1' is no entry (a line is: document word count, three whole numbers)"},
           {"1\n2\n1\n1 1 -1\n", "a:4: '1 1 -1' is no entry (a line is: document word count, three whole numbers)"},
           {"1\n2\n1\n1 1 1 1\n", "a:4: '1 1 1 1' is no entry (a line is: document word count, three whole numbers)"},
           {"1\n2\n1\n1 1 99999999999999999999\n",
            "a:4: '1 1 99999999999999999999' is no entry (a line is: document word count, three whole numbers)"},
           {"1\n2\n1\n1 1 268435457\n", "a:4: the document has more than 268435456 tokens (longer ones cannot be read)"},
           {"1\n2\n2\n1 1 2\n1 2 268435455\n", "a:5: the document has more than 268435456 tokens (longer ones cannot be read)"},
           {"1\n2\n2\n1 1 1\n", "a:4: ends after 1 of 2 entries (was it cut short?)"},
           {"1\n2\n1\n1 1 1\n1 2 1\n", "a:5: more entries than the 1 of line 3 (correct the sizes)"},
           {"1\n2\n0\n", "a: no document has a word that is kept (dropped: 1 empty document)"},
       }) {
    EXPECT_EQ(refused("a", text, two), said);
  }
}

TEST_F(Bags, mistakes_in_other_formats_are_named_with_their_place) {
  const auto words = file("words", "tea\ncup\n");
  const auto refusal_of = [&](Format format, const std::string& text) { return refused("a", text, {.format = format, .words_file = words}); };
  EXPECT_EQ(refusal_of(Format::lda_c, "1 0:1\nx 0:1\n"),
            "a:2: 'x 0:1' does not begin with a number (a line is: how many different words, then word:count of each)");
  EXPECT_EQ(refusal_of(Format::lda_c, "2 0:1\n"), "a:1: says 2 different words and has 1 (was the line cut short?)");
  EXPECT_EQ(refusal_of(Format::lda_c, "1 2:1\n"), "a:1: there is no word 2 (words has 2 words)");
  EXPECT_EQ(refusal_of(Format::lda_c, "1 1:x\n"), "a:1: '1:x' is no word:count (both are whole numbers)");
  EXPECT_EQ(refusal_of(Format::libsvm, "d 0:1\n"), "a:1: there is a word 0 (words count from 1 in this format)");
  EXPECT_EQ(refusal_of(Format::libsvm, "d 3:1\n"), "a:1: there is no word 3 (words has 2 words)");
  EXPECT_EQ(refusal_of(Format::libsvm, "1:1 2:1\n"), "a:1: '1:1' is no label (a line is: label word:count word:count ...)");
  EXPECT_EQ(refusal_of(Format::libsvm, "d 1:0.5\n"), "a:1: '1:0.5' is no word:count (both are whole numbers)");
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_EQ(refusal_of(Format::matrix_market, banner + "1 2 1\n1 2 0.5\n"),
            "a: row 1 has 0.500000 in column 2 (entries are how often a word is in a document)");
  EXPECT_EQ(refusal_of(Format::matrix_market, banner + "1 2 1\n1 2 -1\n"),
            "a: row 1 has -1.000000 in column 2 (entries are how often a word is in a document)");
  EXPECT_EQ(refusal_of(Format::matrix_market, banner + "1 3 1\n1 2 1\n"),
            "a: has 3 columns (words has 2 words; rows are documents and columns words)");
}

TEST_F(Bags, a_file_that_is_cut_short_is_refused) {
  const std::string packed = data::test::gzip(as_uci(made_up_bags(2000)));
  EXPECT_EQ(refused("a.gz", packed.substr(0, packed.size() / 2)), "a.gz: ends inside its gzip data, so it was cut short (copy or pack it again)");
}

TEST_F(Bags, a_document_may_have_a_million_tokens) {
  const auto [corpus, reading] = read_corpus({.files = {file("a", "1\n2\n2\n1 1 1000000\n1 2 1\n")}});
  EXPECT_EQ(corpus.documents[0].size(), 1'000'001u);
  EXPECT_THAT(corpus.frequencies, ElementsAre(1'000'000, 1));
}

TEST_F(Bags, documents_may_lie_in_a_file) {
  const auto bags = made_up_bags(200);
  const Source source{
      .files = {file("a", as_uci(bags))}, .words_file = file("words", words_text()), .rules = {.min_documents = {1, false}}, .documents_in = folder_};
  EXPECT_EQ(words_of(read_corpus(source).first), expanded(bags));
  EXPECT_EQ(refusal([&] { read_corpus({.files = source.files, .documents_in = folder_ / "none"}); }, Code::io),
            "none: no file can be made here: No such file or directory");
}

TEST_F(Bags, of_a_vocabulary_documents_stay_whole_where_that_is_asked_for) {
  data::Names known;
  for (const char* word : {"tea", "cup"}) known.number(word);
  const auto text = file("texts", "tea pot cup tea\npot pot\n\ncup\n");
  Source source{.files = {text}, .vocabulary = &known};
  const auto [dropped_words, dropping] = read_corpus(source);
  EXPECT_EQ(words_of(dropped_words), (std::vector<Words>{{"tea", "cup", "tea"}, {"cup"}}));
  source.keep_unknown = true;
  const auto [whole, reading] = read_corpus(source);
  ASSERT_EQ(whole.documents.size(), 4u);
  EXPECT_THAT(whole.documents[0], ElementsAre(0, kUnknownWord, 1, 0));
  EXPECT_THAT(whole.documents[1], ElementsAre(kUnknownWord, kUnknownWord));
  EXPECT_EQ(whole.documents[2].size(), 0u);
  EXPECT_THAT(whole.names, ElementsAre("1", "2", "3", "4"));
  for (const Reading* said : {&dropping, &reading}) {
    EXPECT_THAT(sentence(*said), testing::HasSubstr("that the model does not know (3 tokens)"));
  }
}

TEST_F(Bags, documents_that_the_format_only_counts_stay_too) {
  data::Names known;
  known.number("tea");
  file("vocab.v.txt", "tea\npot\n");
  const auto uci = file("docword.v.txt", "5\n2\n3\n2 1 2\n2 2 1\n4 1 1\n");
  const auto matrix = file("m.mtx", "%%MatrixMarket matrix coordinate integer general\n5 2 3\n2 1 2\n2 2 1\n4 1 1\n");
  for (const Source& source : {Source{.files = {uci}}, Source{.files = {matrix}, .words_file = folder_ / "vocab.v.txt"}}) {
    Source imposed = source;
    imposed.vocabulary = &known;
    imposed.keep_unknown = true;
    const Corpus whole = read_corpus(imposed).first;
    EXPECT_THAT(whole.names, ElementsAre("1", "2", "3", "4", "5"));
    EXPECT_EQ(whole.documents.size(), 5u);
    EXPECT_THAT(whole.documents[1], ElementsAre(0, 0, kUnknownWord));
    EXPECT_THAT(whole.documents[3], ElementsAre(0));
    EXPECT_EQ(read_corpus(source).second.empty, 3u);
  }
}

}  // namespace
}  // namespace shoal::text

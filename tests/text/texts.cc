// Goal: plain text in its forms becomes the documents that it has, called what the file calls them. Oracle: documents written out by hand.
#include "shoal/text/texts.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <random>

#include "tests/text/corpora.h"

namespace shoal::text {
namespace {

using namespace test;
using testing::ElementsAre;
using PlainText = Corpora;
using Lists = std::vector<Words>;

TEST_F(PlainText, a_line_is_a_document_and_stop_words_are_none) {
  const auto [corpus, reading] = read_corpus({.files = {file("a.txt", "The kernel loads a driver.\r\n\nThe\nDriver: kernel, KERNEL\n")}});
  EXPECT_EQ(words_of(corpus), (Lists{{"kernel", "loads", "driver"}, {"driver", "kernel", "kernel"}}));
  EXPECT_THAT(corpus.names, ElementsAre("1", "4")) << "their lines";
  EXPECT_TRUE(corpus.documents.ordered);
  EXPECT_EQ(corpus.all_documents, 2u);
  EXPECT_EQ(corpus.all_tokens, 6u);
  EXPECT_THAT(corpus.frequencies, ElementsAre(3, 1, 2));
  EXPECT_EQ(sentence(reading),
            "read 2 documents of 3 words, 6 tokens, from a.txt, a document a line; dropped: 2 empty documents, 2 stop words (3 tokens)");
}

TEST_F(PlainText, the_digest_tells_documents_and_their_order_apart) {
  const auto digest = [&](const std::string& text) { return read_corpus({.files = {file("d.txt", text)}}).first.digest; };
  const std::uint64_t whole = digest("tea pot\nsail boat\ntea\n");
  EXPECT_EQ(whole, digest("tea  pot\n\nsail boat.\ntea\n"));
  for (const char* other : {"tea pot\ntea\nsail boat\n", "tea\npot sail boat\ntea\n", "tea pot\nsail boot\ntea\n", "pot tea\nsail boat\ntea\n"})
    EXPECT_NE(whole, digest(other)) << other;
  EXPECT_EQ(whole, read_corpus({.files = {file("d.txt", "tea pot\nsail boat\ntea\n")}}, {1, 2}).first.digest);
}

TEST_F(PlainText, packed_text_is_text) {
  for (const auto& [name, pack] : data::test::kPackers) EXPECT_EQ(read("a", pack("one word\nand another\n")), (Lists{{"word"}})) << name;
}

TEST_F(PlainText, stop_words_may_be_none_or_a_file) {
  EXPECT_EQ(read("a", "the end\n", {.rules = {.stop_words = "none"}}), (Lists{{"the", "end"}}));
  const std::string list = file("stops", "end # of it\n\n# none\n").string();
  EXPECT_EQ(read("a", "the End\n", {.rules = {.stop_words = list}}), (Lists{{"the"}}));
  EXPECT_EQ(read("a", "The End\n", {.tokens = {.keep_case = true}}), (Lists{{"End"}})) << "in any case";
  EXPECT_EQ(refused("a", "a\n", {.rules = {.stop_words = (folder_ / "gone").string()}}), "gone: cannot be opened: No such file or directory");
}

TEST_F(PlainText, a_column_is_found_by_name_number_or_its_text) {
  const std::string csv = "id,title,score\n7,\"Tea, hot\",1\n8,Cold coffee,2\n";
  EXPECT_EQ(read("a.csv", csv), (Lists{{"tea", "hot"}, {"cold", "coffee"}}));
  EXPECT_EQ(read("a", csv, {.column = "title"}), (Lists{{"tea", "hot"}, {"cold", "coffee"}}));
  EXPECT_EQ(read("a.csv", csv, {.column = "2"}), (Lists{{"tea", "hot"}, {"cold", "coffee"}}));
  const auto [corpus, reading] = read_corpus({.files = {file("a.csv", csv)}});
  EXPECT_THAT(corpus.names, ElementsAre("7", "8"));
  EXPECT_EQ(reading.form, "column 'title' between ','");
  EXPECT_EQ(read("a", "x1\tnoun\tan entity\nx2\tverb\tto run\n"), (Lists{{"entity"}, {"run"}})) << "lines with as many tabs";
  EXPECT_EQ(said("a", "a text of words\tspam\nanother text of words\tham\n"),
            "read 2 documents of 2 words, 4 tokens, from a, column 1 between tabs; dropped: 3 stop words (4 tokens)");
}

TEST_F(PlainText, a_record_may_go_on_over_lines_in_quotes) {
  EXPECT_EQ(read("a.csv", "id,text\n1,\"two\nlines, \"\"quoted\"\"\nthree\"\n2,\"plain\"\n"),
            (Lists{{"two", "lines", "quoted", "three"}, {"plain"}}));
  EXPECT_EQ(refused("a.csv", "id,text\n1,\"two\nlines\n"), "a.csv:2: a quote is not closed (a quote within quotes is doubled)");
  EXPECT_EQ(read("a.tsv", "1\t\"open quote\n2\t\"in\" quotes\n3\t\"a tab \"\"here\"\"\"\n"), (Lists{{"open", "quote"}, {"quotes"}, {"tab"}}))
      << "between tabs a quote may be open";
}

TEST_F(PlainText, records_that_are_written_are_read_again) {
  std::mt19937 random(6);
  std::string csv = "name;body\n";
  Lists expected;
  for (int d = 0; d < 300; ++d) {
    csv += "\"d;" + std::to_string(d) + "\";\"";
    expected.emplace_back();
    for (std::size_t i = 1 + random() % 10; i > 0; --i) {
      expected.back().push_back("w" + std::string(1, "abc"[random() % 3]));
      csv += expected.back().back() + std::vector<std::string>{" ", "\n", "; ", " \"\"", "\"\" ", "\n\n"}[random() % 6];
    }
    csv += "\"\n";
  }
  const auto [corpus, reading] = read_corpus({.files = {file("a.csv", csv)}, .column = "body"});
  EXPECT_EQ(words_of(corpus), expected);
  EXPECT_EQ(corpus.names[17], "d;17");
}

TEST_F(PlainText, columns_that_are_not_there_are_refused) {
  EXPECT_EQ(refused("a.csv", "id,text\n1,tea\n", {.column = "body"}), "a.csv: there is no column 'body' (the first line has 'id', 'text')");
  EXPECT_EQ(refused("a.csv", "id,text\n1,tea\n", {.column = "3"}), "a.csv: there is no column 3 (columns count from 1 to 2)");
  EXPECT_EQ(refused("a.csv", "id,text\n1,tea\n2,cup\n3,pot\n4\n", {.column = "text"}), "a.csv:5: has no column 2 (fields stand between ',')");
  EXPECT_EQ(refused("a.csv", "plain text\nmore\n"),
            "a.csv: nothing divides the first lines into columns (fields stand between tabs, commas, semicolons or '|')");
}

TEST_F(PlainText, a_file_may_be_a_document) {
  fs::create_directories(folder_ / "mail/sub");
  fs::create_directories(folder_ / "mail/.hidden");
  file("mail/b.txt", "tea\ncup\n");
  file("mail/sub/a.txt", "pot\n");
  file("mail/a.gz", data::test::gzip("kettle\n"));
  file("mail/.hidden/x", "secret\n");
  const auto [corpus, reading] = read_corpus({.files = {folder_ / "mail"}});
  EXPECT_EQ(words_of(corpus), (Lists{{"kettle"}, {"tea", "cup"}, {"pot"}}));
  EXPECT_THAT(without_folder(corpus.names[2]), "mail/sub/a.txt");
  EXPECT_EQ(sentence(reading), "read 3 documents of 4 words, 4 tokens, from a.gz and 2 more files, a document a file; nothing dropped");
  fs::create_directories(folder_ / "none");
  EXPECT_EQ(refusal([&] { read_corpus({.files = {folder_ / "none"}}); }), "none: has no file (name the folder that the documents are in)");
}

TEST_F(PlainText, names_stand_before_words_in_other_programs_formats) {
  const Source yahoo{.files = {file("a", "git 9c0 Tea-Pot  the x.y\n\nu-boot 1d\n")}, .format = Format::yahoo};
  const Corpus words = read_corpus(yahoo).first;
  EXPECT_EQ(words_of(words), (Lists{{"Tea-Pot", "the", "x.y"}})) << "words as they stand";
  EXPECT_THAT(words.names, ElementsAre("git 9c0"));
  EXPECT_EQ(refused("a", "git\n", {.format = Format::yahoo}), "a:1: has one field (a line is: id1 id2 word word ...)");

  const Source mallet{.files = {file("b", "d1\ten\tThe Tea\tpot\n")}, .format = Format::mallet};
  const Corpus text = read_corpus(mallet).first;
  EXPECT_EQ(words_of(text), (Lists{{"tea", "pot"}}));
  EXPECT_THAT(text.names, ElementsAre("d1"));
  EXPECT_EQ(refused("b", "d1\ttea\n", {.format = Format::mallet}), "b:1: has fewer than 3 fields between tabs (a line is: name<TAB>label<TAB>text)");
}

TEST_F(PlainText, several_files_are_read_as_one) {
  const Source source{.files = {file("a", "tea\n"), file("b", "cup\ntea\n")}};
  EXPECT_EQ(words_of(read_corpus(source).first), (Lists{{"tea"}, {"cup"}, {"tea"}}));
}

TEST_F(PlainText, a_document_may_have_a_million_words) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += i % 2 == 0 ? "tea " : "cup ";
  const Corpus corpus = read_corpus({.files = {file("a", text)}}).first;
  ASSERT_EQ(corpus.documents.size(), 1u);
  EXPECT_THAT(corpus.frequencies, ElementsAre(500'000, 500'000));
}

TEST_F(PlainText, nothing_that_is_kept_is_refused_with_what_became_of_it) {
  EXPECT_EQ(refused("a", ""), "a: no document has a word that is kept (nothing dropped)");
  EXPECT_EQ(refused("a", "the\n42\n"), "a: no document has a word that is kept (dropped: 2 empty documents, 1 stop word (1 token))");
}

TEST_F(PlainText, what_is_not_utf8_is_counted) {
  EXPECT_EQ(
      said("a", "caf\xE9 noir\ntea\n"),
      "read 2 documents of 3 words, 3 tokens, from a, a document a line; 1 document not quite UTF-8, where what is broken divides words; nothing "
      "dropped");
}

TEST_F(PlainText, a_full_disk_is_one_line) {
  struct rlimit limit{}, none{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &none), 0);
  std::string text;
  for (int i = 0; i < 600'000; ++i) text += "tea\n";
  const Source source{.files = {file("a", text)}, .documents_in = folder_};
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);  // then the write fails, as on a full disk
  limit = none;
  limit.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string said = refusal([&] { read_corpus(source); }, Code::io);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(said, folder_.string() + ": words cannot be written: File too large");
}

}  // namespace
}  // namespace shoal::text

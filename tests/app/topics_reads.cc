// `shoal topics` on texts that cannot be read: each mistake is one line, and nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

TEST(topics_reads, a_mistake_is_one_line_and_leaves_nothing) {
  const Folder folder;
  folder.write("docword.a.txt", "1\n2\n1\n1 3 1\n");
  folder.write("words", "tea\ncup\ntea\n");
  folder.write("texts", "tea cup\ntea pot\n");
  folder.write("more.csv", "name,text\n1,tea\n");
  folder.write("cut.gz", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b", 11));
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"docword.a.txt"}, "docword.a.txt:4: there is no word 3 (words count from 1 to the 2 of line 2)\n"},
      {{"docword.a.txt", "--vocab", "words"}, "words:3: 'tea' is there twice, first in line 1 (each word has one number)\n"},
      {{"none"}, "none: cannot be opened: No such file or directory\n"},
      {{"cut.gz"}, "cut.gz: ends inside its gzip data, so it was cut short (copy or pack it again)\n"},
      {{"texts", "--token-pattern", "[a"}, "'[a': is no regular expression: U_REGEX_MISSING_CLOSE_BRACKET (for example [\\p{L}]{3,})\n"},
      {{"texts", "--column", "body"}, "texts: there is no column 'body' (the first line has 'tea cup')\n"},
      {{"texts", "--stop-words", "list"}, "list: cannot be opened: No such file or directory\n"},
      {{"texts", "--min-df", "3"},
       "texts: no document has a word that is kept (dropped: 2 empty documents, 3 words in fewer than 3 documents (4 tokens))\n"},
      {{"texts", "--max-df", "2.5"}, "--max-df: '2.5' is no number of documents and no share of them (for example 5, 0.5 or 50%)\n"},
      {{"docword.a.txt", "--bigrams", "all"}, "docword.a.txt: is a bag of words, in which none follows another (leave pairs of words out)\n"},
      {{"texts", "--memory", "much"}, "--memory: 'much' is not a size (for example 64KB, 8MB or 1.5MiB)\n"},
      {{"texts", "--memory", "0"}, "--memory: is above 0\n"},
      {{"texts", "more.csv"},
       "more.csv: is a table by its name, and texts is none (name files of one kind, or say --format column or --format lines)\n"},
      {{"more.csv", "texts"},
       "more.csv: is a table by its name, and texts is none (name files of one kind, or say --format column or --format lines)\n"},
      {{"texts", "words", "--format", "uci"}, "texts: is one file in this format, and 2 are given (name one)\n"},
  };
  for (const auto& mistake : mistakes) {
    std::vector<std::string> words{"topics", "train", "-k", "2", "--output", "model"};
    words.insert(words.end(), mistake.words.begin(), mistake.words.end());
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.err, mistake.line);
    EXPECT_EQ(outcome.status, 2) << mistake.line;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "model")) << mistake.line;
  }
}

// Goal: config.json says all that it takes to train the same model again. Method: as a script would, from config.json alone.
TEST(topics_reads, a_model_says_how_its_files_were_read) {
  const Folder folder;
  folder.write("t", "name\tshort\tlong\n1\tsail\ttea cup tea\n2\tboat\tcup milk pot tea\n");
  folder.write("w", "tea\ncup\npot\n");
  folder.write("b.txt", "2\n3\n3\n1 1 2\n1 2 1\n2 3 4\n");
  const std::vector<std::vector<std::string>> trained{{"t", "--format", "column", "--column", "short"},
                                                      {"b.txt", "--format", "uci", "--vocab", "w"}};
  for (const std::vector<std::string>& more : trained) {
    const std::string name = more[0] + ".model";
    std::vector<std::string> words{"topics",       "train", "-k",        "2", "--sweeps", "3",
                                   "--test-share", "0",     "--threads", "1", "--output", name};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(shoal(folder, words).status, 0);
    const auto config = nlohmann::json::parse(read_file(folder.path() / name / "config.json"));
    std::vector<std::string> again{"topics", "train", "--output", "again", "--test-share", "0"};
    for (const auto& [flag, entry] :
         std::map<std::string, std::string>{{"-k", "topics"}, {"--sweeps", "sweeps"}, {"--threads", "threads"}})
      again.insert(again.end(), {flag, std::to_string(config.at(entry).get<int>())});
    for (const char* said : {"format", "column", "vocab"}) {
      if (const std::string value = config.at(said); !value.empty())
        again.insert(again.end(), {std::string("--") + said, value});
    }
    for (const std::string file : config.at("files")) again.push_back(file);
    ASSERT_EQ(shoal(folder, again).status, 0);
    for (const char* file : {"model.safetensors", "vocab.txt"})
      EXPECT_EQ(read_file(folder.path() / name / file), read_file(folder.path() / "again" / file)) << name << ": " << file;
    std::filesystem::remove_all(folder.path() / "again");
  }
}

TEST(topics_reads, a_folder_that_cannot_be_made_is_refused) {
  const Folder folder;
  folder.write("texts", "tea cup\ntea pot\n");
  const auto told = shoal(folder, {"topics", "train", "texts", "-k", "2", "--output", "texts/model"});
  EXPECT_EQ(told.err, "texts/model: cannot be made: Not a directory (name another folder)\n");
  EXPECT_EQ(told.status, 2);
}

// Texts may take long to read: what needs none of them is said before.
TEST(topics_reads, mistakes_are_refused_before_texts_are_read) {
  const Folder folder;
  folder.write("texts", "tea cup\ntea pot\n");
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "topics");
    const auto told = shoal(folder, words);
    EXPECT_EQ(told.status, 2) << told.out;
    return told.err;
  };
  EXPECT_EQ(refusal({"train", "missing", "--parallel", "nonsense"}), "--parallel: \"nonsense\" is none (auto, rotation or data)\n");
  EXPECT_EQ(refusal({"train", "missing", "--output", "texts"}), "texts: cannot be made: Not a directory (name another folder)\n");
  EXPECT_EQ(refusal({"train", "missing", "--output", "texts/a/b"}), "texts/a/b: cannot be made: Not a directory (name another folder)\n");
  EXPECT_EQ(refusal({"update", "missing", "texts", "--output", "texts"}), "texts: cannot be made: Not a directory (name another folder)\n");
  for (const std::string verb : {"update", "evaluate"}) {
    std::vector<std::string> words{verb, "missing", "texts", "--words-file", "texts"};
    if (verb == "update") words.insert(words.end(), {"--output", "model"});
    EXPECT_EQ(refusal(words), "--words-file: is of another program's topics of tokens (say with --state whose they are, or leave it out)\n");
  }
}

// What is needed is said; with that it is enough.
TEST(topics_reads, too_little_memory_is_refused_with_the_size_needed) {
  const Folder folder;
  std::string texts;
  for (int d = 0; d < 2000; ++d) texts += "tea cup pot milk saucer spoon " + std::to_string(d % 7) + "x\n";
  folder.write("texts", texts);
  const auto train = [&](const std::string& memory) {
    return shoal(folder, {"run", "-n", "2", "--", SHOAL_PROGRAM, "topics", "train", "texts", "-k", "5", "--sweeps", "3", "--threads", "2", "--memory",
                          memory, "--output", "model"});
  };
  const auto refused = train("1M");
  EXPECT_EQ(refused.status, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "model"));
  std::smatch told;
  ASSERT_TRUE(std::regex_search(refused.err, told,
                                std::regex("1 MB of memory are too little: rank [01] needs ([0-9]+) MB "
                                           "\\(give it that, or take more members, fewer topics or fewer words\\)")))
      << refused.err;
  const auto trained = train(told[1].str() + "MB");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "model" / "model.safetensors"));
}

TEST(topics_reads, members_read_the_same_and_one_says_so) {
  const Folder folder;
  folder.write("texts", "the tea and a cup\n\nnew tea, new cup\nsaucer\n");
  const auto outcome =
      shoal(folder, {"run", "-n", "2", "--", SHOAL_PROGRAM, "topics", "train", "texts", "-k", "2", "--sweeps", "2", "--test-share", "0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("read 3 documents of 4 words, 7 tokens, from texts, a document a line; "));
  EXPECT_THAT(outcome.out, testing::HasSubstr("dropped: 1 empty document, 3 stop words (3 tokens)"));
}

}  // namespace
}  // namespace shoal::app::test

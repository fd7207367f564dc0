// Goal: the flags of `shoal topics` become what is read, and a wrong one is one line with its name. Oracle: by hand.
#include "app/topics_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "shoal/core/error.h"
#include "tests/refusal.h"

namespace shoal::app {
namespace {

TextOptions parsed(std::vector<std::string> arguments) {
  TextOptions options;
  CLI::App app;
  declare_texts(app, options);
  declare_words(app, options);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  app.parse(arguments);
  return options;
}

TEST(TopicsText, flags_say_what_is_read) {
  const text::Source source = parsed({"a.csv", "b.csv",       "--format",     "column",    "--column", "body", "--vocab",  "v.txt", "--token-pattern",
                                      "\\w+",  "--keep-case", "--stop-words", "none",      "--min-df", "5",    "--max-df", "50%",   "--top-words",
                                      "3",     "--max-words", "100",          "--bigrams", "20"})
                                  .source();
  EXPECT_EQ(source.files, (std::vector<std::filesystem::path>{"a.csv", "b.csv"}));
  EXPECT_EQ(source.format, text::Format::column);
  EXPECT_EQ(source.column, "body");
  EXPECT_EQ(source.words_file, "v.txt");
  EXPECT_EQ(source.tokens.pattern, "\\w+");
  EXPECT_TRUE(source.tokens.keep_case);
  EXPECT_EQ(source.rules.stop_words, "none");
  EXPECT_EQ(source.rules.min_documents, (text::DocumentLimit{5, false}));
  EXPECT_EQ(source.rules.max_documents, (text::DocumentLimit{0.5, true}));
  EXPECT_EQ(source.rules.top_words, 3u);
  EXPECT_EQ(source.rules.most_words, 100u);
  EXPECT_EQ(source.rules.pairs, text::Pairs::frequent);
  EXPECT_EQ(source.rules.pair_tokens, 20u);
  EXPECT_EQ(parsed({"a", "--bigrams", "all"}).source().rules.pairs, text::Pairs::all);
  EXPECT_FALSE(parsed({"a"}).source().rules.need_counts()) << "nothing is left out unasked";
}

TEST(TopicsText, what_was_read_can_be_read_again) {
  EXPECT_EQ(parsed({"a.csv", "b.csv", "--format", "column", "--column", "body", "--vocab", "v.txt"}).read_from().dump(),
            R"({"files":["a.csv","b.csv"],"format":"column","column":"body","vocab":"v.txt"})");
  EXPECT_EQ(parsed({"a"}).read_from().dump(), R"({"files":["a"],"format":"auto","column":"","vocab":""})");
}

TEST(TopicsText, a_wrong_flag_is_one_line_with_its_name) {
  EXPECT_EQ(refusal([] { parsed({"a", "--min-df", "many"}).source(); }),
            "--min-df: 'many' is no number of documents and no share of them (for example 5, 0.5 or 50%)");
  EXPECT_EQ(refusal([] { parsed({"a", "--max-df", "1.5"}).source(); }),
            "--max-df: '1.5' is no number of documents and no share of them (for example 5, 0.5 or 50%)");
  EXPECT_EQ(refusal([] { parsed({"a", "--bigrams", "0"}).source(); }), "--bigrams: '0' is no number of tokens (a number above 0, or all)");
  EXPECT_EQ(refusal([] { parsed({"a", "--format", "xml"}).source(); }).substr(0, 28), "--format: 'xml' is no format");
}

TEST(TopicsText, a_models_words_are_read_as_it_was_trained) {
  TextOptions trained = parsed({"a", "--token-pattern", "\\w+", "--keep-case", "--stop-words", "none", "--bigrams", "all", "--min-df", "3"}),
              used = parsed({"b"});
  used.words_as(trained.words());
  EXPECT_EQ(used.source().tokens.pattern, "\\w+");
  EXPECT_TRUE(used.source().tokens.keep_case);
  EXPECT_EQ(used.source().rules.stop_words, "none");
  EXPECT_EQ(used.source().rules.pairs, text::Pairs::all);
  EXPECT_EQ(used.source().rules.min_documents, text::DocumentLimit{}) << "which the vocabulary has in it";
}

}  // namespace
}  // namespace shoal::app

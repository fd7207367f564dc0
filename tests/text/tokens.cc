// Goal: words are those of Unicode's rules in any language, and ASCII, which does not go through ICU, has the same. Oracle: words written out by
// hand; ICU's own word boundaries over texts made up.
#include "shoal/text/tokens.h"

#include <gmock/gmock.h>
#include <unicode/brkiter.h>
#include <unicode/uchar.h>

#include <memory>
#include <random>
#include <vector>

#include "tests/data/files.h"

namespace shoal::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words(std::string_view text, const TokenRules& rules = {}) {
  std::vector<std::string> found;
  Tokens(rules).each(text, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

TEST(Token, words_have_a_letter_and_are_in_lower_case) {
  EXPECT_THAT(words("The QUICK (brown) fox's tail, 3.14 of 42 -- don't! It's e.g. k-means, snake_case; 3rd x86_64"),
              ElementsAre("the", "quick", "brown", "fox's", "tail", "of", "don't", "it's", "e.g", "k", "means", "snake_case", "3rd", "x86_64"));
  EXPECT_THAT(words(""), IsEmpty());
  EXPECT_THAT(words("1 2.5 __ -- ..."), IsEmpty());
}

TEST(Token, other_languages_have_their_words) {
  EXPECT_THAT(words("Straße CAFÉ ΟΔΟΣ Москва"), ElementsAre("straße", "café", "οδος", "москва"));
  EXPECT_THAT(words("don’t"), ElementsAre("don't"));
  EXPECT_THAT(words("cafe\xCC\x81"), ElementsAre("café")) << "composed";
  EXPECT_THAT(words("我喜欢学习机器学习"), ElementsAre("我", "喜欢", "学习", "机器", "学习"));
  EXPECT_THAT(words("東京都に住んでいます。"), ElementsAre("東京", "都", "に", "住", "んで", "い", "ます"));
  EXPECT_THAT(words("カタカナ"), ElementsAre("カタカナ"));
  EXPECT_THAT(words("สวัสดีครับ"), ElementsAre("สวัสดี", "ครับ"));
}

TEST(Token, case_may_be_kept) { EXPECT_THAT(words("The Café", {.keep_case = true}), ElementsAre("The", "Café")); }

TEST(Token, a_pattern_says_what_words_are) {
  EXPECT_THAT(words("a to the-end 42", {.pattern = "[\\p{L}\\d]{2,}"}), ElementsAre("to", "the", "end", "42"));
  EXPECT_THAT(words("Ärger im ÖPNV", {.pattern = "\\p{L}{4,}", .keep_case = true}), ElementsAre("Ärger", "ÖPNV"));
  EXPECT_THAT(words("New York, new\nday", {.pattern = "new\\s\\w+"}), ElementsAre("new_york", "new_day"));
  EXPECT_THAT(words("abc", {.pattern = "x*"}), IsEmpty()) << "what is empty is no word";
}

TEST(Token, a_pattern_that_is_none_or_takes_too_long_is_one_line) {
  const auto refusal = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([] { words("a", {.pattern = "[a"}); }),
            "'[a': is no regular expression: U_REGEX_MISSING_CLOSE_BRACKET (for example [\\p{L}]{3,})");
  EXPECT_EQ(refusal([] { words(std::string(1'000'000, 'x'), {.pattern = "(x|y)*z"}); }),
            "'(x|y)*z': takes too long or too much memory with a text (write it without repetitions in repetitions)");
}

TEST(Token, what_is_not_utf8_divides_words_and_is_told) {
  Tokens tokens;
  std::vector<std::string> found;
  const auto take = [&](std::string_view word) { found.emplace_back(word); };
  EXPECT_FALSE(tokens.each("caf\xE9 plain br\xFFoken", take));
  EXPECT_THAT(found, ElementsAre("caf", "plain", "br", "oken"));
  EXPECT_TRUE(tokens.each("\xEF\xBF\xBD is a character", take)) << "that a text may have";
}

// The boundaries of ICU over the whole text, and what is a word by the documentation.
std::vector<std::string> words_by_icu(const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaker(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
  const icu::UnicodeString plain = icu::UnicodeString::fromUTF8(text);
  breaker->setText(plain);
  std::vector<std::string> found;
  for (std::int32_t begin = breaker->first(), end = breaker->next(); end != icu::BreakIterator::DONE; begin = end, end = breaker->next()) {
    icu::UnicodeString word = plain.tempSubStringBetween(begin, end);
    bool letter = false;
    for (std::int32_t i = 0; i < word.length(); ++i) letter = letter || u_isUAlphabetic(word.char32At(i));
    if (!letter) continue;
    found.emplace_back();
    word.toLower(icu::Locale::getRoot()).toUTF8String(found.back());
  }
  return found;
}

TEST(Token, ascii_has_the_words_that_icu_finds) {
  std::mt19937 random(3);
  const std::string likely = "aZ19_.,;'\"- ";
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = random() % 8 == 0 ? static_cast<char>(1 + random() % 127) : likely[random() % likely.size()];
    std::erase_if(text, [](char c) { return c == ':' || c == '@'; });  // in which versions of ICU differ
    ASSERT_EQ(words(text), words_by_icu(text)) << text << ", round " << round;
  }
}

TEST(Token, ascii_beside_other_letters_has_the_words_that_icu_finds) {
  std::mt19937 random(4);
  const std::vector<std::string> pieces = {"a", "B",  "1",    "_",  ".",  "'", ",", " ",  "  ", "\t",
                                           "é", "学", "机器", "カ", "ー", "‿", "א", "\"", "・", "ส"};
  for (int round = 0; round < 5'000; ++round) {
    std::string text;
    for (std::size_t i = random() % 20; i > 0; --i) text += pieces[random() % pieces.size()];
    ASSERT_EQ(words(text), words_by_icu(text)) << text << ", round " << round;
  }
}

}  // namespace
}  // namespace shoal::text

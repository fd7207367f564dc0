#include "shoal/text/tokens.h"

#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "shoal/core/error.h"
#include "shoal/data/number.h"

namespace shoal::text {
namespace {

constexpr std::int32_t kPatience = 10'000;  // of a pattern with one text, in steps of the engine that take about a millisecond each

enum Kind : std::uint8_t { other, letter, digit, joiner };

// By Word_Break of ASCII: ALetter, Numeric, ExtendNumLet.
constexpr std::array<Kind, 128> kKinds = [] {
  std::array<Kind, 128> kinds{};
  for (std::size_t c = 'a'; c <= 'z'; ++c) kinds[c] = letter;
  for (std::size_t c = 'A'; c <= 'Z'; ++c) kinds[c] = letter;
  for (std::size_t c = '0'; c <= '9'; ++c) kinds[c] = digit;
  kinds['_'] = joiner;
  return kinds;
}();
Kind kind(char c) { return kKinds[static_cast<unsigned char>(c)]; }

// Whether c, between two letters or two digits, divides them not (WB6, WB7: MidLetter, MidNumLet, Single_Quote; WB11, WB12: MidNum and these).
bool joins_letters(char c) { return c == '\'' || c == '.'; }
bool joins_digits(char c) { return joins_letters(c) || c == ',' || c == ';'; }

// ASCII that is never inside a word, whatever is around it ('"' is, in Hebrew). Versions of ICU differ in ':' and '@'.
bool divides(char c) { return static_cast<unsigned char>(c) < 0x80 && kind(c) == other && !joins_digits(c) && c != '"'; }
char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_ascii(std::string_view text) {
  std::uint64_t any = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + i, sizeof eight);
    any |= eight;
  }
  for (; i < text.size(); ++i) any |= static_cast<unsigned char>(text[i]) & 0x80u;
  return (any & 0x8080808080808080u) == 0;
}

void require(UErrorCode status) {
  if (U_FAILURE(status)) throw Error(Code::io, std::string("ICU has no rules for words here: ") + u_errorName(status));
}

}  // namespace

class Tokens::Icu {
 public:
  explicit Icu(const TokenRules& rules) : pattern_(data::quote(rules.pattern)), keep_case_(rules.keep_case) {
    UErrorCode status = U_ZERO_ERROR;
    composer_ = icu::Normalizer2::getNFCInstance(status);
    require(status);
    if (rules.pattern.empty()) {
      breaker_.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
      require(status);
      return;
    }
    matcher_ = std::make_unique<icu::RegexMatcher>(icu::UnicodeString::fromUTF8(rules.pattern), 0, status);
    if (U_SUCCESS(status)) matcher_->setTimeLimit(kPatience, status);
    if (U_FAILURE(status)) {
      throw Error(Code::invalid_argument, std::string("is no regular expression: ") + u_errorName(status), pattern_, "for example [\\p{L}]{3,}");
    }
  }
  bool has_pattern() const { return matcher_ != nullptr; }

  // False where the text is not quite UTF-8.
  bool read(std::string_view text) {
    text_ = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
    return text_.indexOf(static_cast<UChar>(0xFFFD)) < 0 || text.find("\xEF\xBF\xBD") != std::string_view::npos;
  }

  void words(const Take& take) {
    breaker_->setText(text_);
    for (std::int32_t begin = breaker_->first(), end = breaker_->next(); end != icu::BreakIterator::DONE; begin = end, end = breaker_->next()) {
      if (has_letter(begin, end)) give(begin, end, take);
    }
  }

  void matches(const Take& take) {
    if (!keep_case_) text_.toLower(icu::Locale::getRoot());
    matcher_->reset(text_);
    UErrorCode status = U_ZERO_ERROR;
    while (matcher_->find(status)) {
      if (const std::int32_t begin = matcher_->start(status), end = matcher_->end(status); begin < end) give(begin, end, take);
    }
    if (status == U_REGEX_TIME_OUT || status == U_REGEX_STACK_OVERFLOW) {
      throw Error(Code::invalid_argument, "takes too long or too much memory with a text", pattern_, "write it without repetitions in repetitions");
    }
    require(status);
  }

 private:
  bool has_letter(std::int32_t begin, std::int32_t end) const {
    for (std::int32_t at = begin; at < end; at = text_.moveIndex32(at, 1)) {
      if (u_isUAlphabetic(text_.char32At(at))) return true;
    }
    return false;
  }

  void give(std::int32_t begin, std::int32_t end, const Take& take) {
    icu::UnicodeString word = text_.tempSubStringBetween(begin, end);
    if (!keep_case_) word.toLower(icu::Locale::getRoot());
    word.findAndReplace(icu::UnicodeString(UChar(0x2019)), icu::UnicodeString(UChar('\'')));
    UErrorCode status = U_ZERO_ERROR;
    if (!composer_->isNormalized(word, status)) word = composer_->normalize(word, status);
    require(status);
    plain_.clear();
    word.toUTF8String(plain_);
    std::replace_if(plain_.begin(), plain_.end(), [](unsigned char c) { return c <= ' ' || c == 127; }, '_');
    take(plain_);
  }

  std::string pattern_;  // for error lines
  bool keep_case_;
  const icu::Normalizer2* composer_ = nullptr;  // ICU's, for as long as the program runs
  std::unique_ptr<icu::BreakIterator> breaker_;
  std::unique_ptr<icu::RegexMatcher> matcher_;
  icu::UnicodeString text_;
  std::string plain_;
};

Tokens::Tokens(const TokenRules& rules) : keep_case_(rules.keep_case), icu_(std::make_unique<Icu>(rules)) {}
Tokens::~Tokens() = default;
Tokens::Tokens(Tokens&&) noexcept = default;

bool Tokens::each(std::string_view text, const Take& take) {
  bool whole = true;
  if (icu_->has_pattern()) {
    whole = icu_->read(text);
    icu_->matches(take);
  } else if (is_ascii(text)) {
    ascii(text, take);
  } else {
    // What lies between two that divide can be divided by itself, most of it as ASCII.
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      while (end < text.size() && !divides(text[end])) ++end;
      if (const std::string_view chunk = text.substr(begin, end - begin); is_ascii(chunk)) {
        ascii(chunk, take);
      } else {
        whole = icu_->read(chunk) && whole;
        icu_->words(take);
      }
      begin = end + 1;
    }
  }
  return whole;
}

// WB5 to WB13b of the annex for ASCII.
void Tokens::ascii(std::string_view chunk, const Take& take) {
  const char* const end = chunk.data() + chunk.size();
  for (const char* at = chunk.data(); at != end;) {
    if (kind(*at) == other) {
      ++at;
      continue;
    }
    bool has_letter = false;
    word_.clear();
    for (;;) {
      const Kind here = kind(*at);
      has_letter = has_letter || here == letter;
      word_ += keep_case_ ? *at : lower_ascii(*at);
      if (++at == end) break;
      if (kind(*at) != other) continue;
      const bool inside = at + 1 != end && here == kind(at[1]) && ((here == letter && joins_letters(*at)) || (here == digit && joins_digits(*at)));
      if (!inside) break;
      word_ += *at++;
    }
    if (has_letter) take(word_);
  }
}

std::string lower(std::string_view word) {
  std::string lowered;
  icu::UnicodeString::fromUTF8(icu::StringPiece(word.data(), static_cast<std::int32_t>(word.size())))
      .toLower(icu::Locale::getRoot())
      .toUTF8String(lowered);
  return lowered;
}

}  // namespace shoal::text

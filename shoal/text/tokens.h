// The words of a text. Without a pattern they are what lies between the word boundaries of Unicode (Standard Annex 29), where it has a letter:
// numbers and punctuation are no words, "don't", "3rd" and "snake_case" are. Chinese, Japanese, Thai, Lao, Khmer and Burmese are divided by ICU's
// dictionaries. Words are in lower case, composed (NFC) and with ' for the typographic apostrophe. ':' and '@' always divide, in which versions of
// ICU differ. ASCII does not meet ICU: it is divided by the same rules, written out, which is much faster. Threads: one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shoal::text {

std::string lower(std::string_view word);  // by Unicode, in no language's own way

struct TokenRules {
  // Regular expression of ICU (as Perl's), whose matches in the lower-case text are the words, with "_" for spaces in them. Empty: as above.
  std::string pattern = {};
  bool keep_case = false;
};

class Tokens {
 public:
  using Take = std::function<void(std::string_view word)>;  // valid during the call

  // Throws Error{invalid_argument} for a pattern that is none.
  explicit Tokens(const TokenRules& rules = {});
  ~Tokens();
  Tokens(Tokens&&) noexcept;

  // Gives the words in their order. False where the text is not quite UTF-8: what is not divides words. Throws Error{invalid_argument} where a
  // pattern takes too long or too much memory.
  bool each(std::string_view text, const Take& take);

 private:
  class Icu;  // the library's breaker, matcher and buffers
  void ascii(std::string_view chunk, const Take& take);

  bool keep_case_;
  std::string word_;
  std::unique_ptr<Icu> icu_;
};

}  // namespace shoal::text

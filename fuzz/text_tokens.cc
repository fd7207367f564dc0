// Any bytes as text, by the rules of Unicode and by a pattern: words that are UTF-8, not empty and in lower case, the same again in parts. Run
// fuzz_text_tokens [corpus folder].
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/target.h"
#include "shoal/text/tokens.h"

SHOAL_FUZZ(text_tokens, data, size) {
  using namespace shoal::text;
  static Tokens plain, pattern({.pattern = "[\\p{L}\\p{M}]+"});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (Tokens* tokens : {&plain, &pattern}) {
    std::vector<std::string> words, again;
    const bool whole = tokens->each(text, [&](std::string_view word) { words.emplace_back(word); });
    for (const auto& word : words) {
      if (word.empty() || lower(word) != word) std::abort();
      if (!tokens->each(word, [](std::string_view) {})) std::abort();
    }
    std::string with_spaces;
    for (const char c : text) with_spaces.append(c == ' ' ? 2 : 1, c);
    if (tokens->each(with_spaces, [&](std::string_view word) { again.emplace_back(word); }) != whole || again != words) std::abort();
  }
  return 0;
}

// Which words make up a vocabulary, by how often they occur and in how many documents. Values and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace shoal::text {

// A number of documents: so many, or a share of all.
struct DocumentLimit {
  double value = 0;
  bool is_share = false;
  double of(std::uint64_t documents) const { return is_share ? value * static_cast<double>(documents) : value; }
  friend bool operator==(const DocumentLimit&, const DocumentLimit&) = default;
};
// "5" is a number; "0.5" and "50%" are shares. Throws Error{invalid_argument} for anything else.
DocumentLimit parse_limit(std::string_view text);
std::string to_text(const DocumentLimit& limit);  // "5", "50 %"

enum class Pairs : std::uint8_t {
  none,
  frequent,  // two words that follow each other often enough are one: a_b stands for both, from left to right
  all,       // each two words that follow each other are a word, and there are no others
};

struct VocabularyRules {
  std::string stop_words = {};  // "english", "none" or a file, a word a line. Empty: English for text, none where the words are numbers already
  DocumentLimit min_documents = {}, max_documents = {1, true};  // words in fewer, or in more, are dropped
  std::uint32_t top_words = 0;  // that many of the most frequent words are dropped
  std::uint32_t most_words = 0;  // of the others no more are kept, the most frequent; 0: all
  Pairs pairs = Pairs::none;
  std::uint64_t pair_tokens = 0;  // that a frequent pair has at least

  // Whether they need to know how often words occur before any can be told from the others.
  bool need_counts() const;
};

// Why a word is none of the vocabulary, in the order in which that is found out.
enum class Fate : std::uint8_t { kept, stop_word, unknown, rare, common, top, beyond };
inline constexpr std::size_t kFates = 7;

// Of each word that is kept so far: how many tokens, in how many documents. Ties are decided by number, the lower first.
void choose(const VocabularyRules& rules, std::uint64_t documents, std::span<const std::uint64_t> tokens, std::span<const std::uint32_t> in_documents,
            std::span<Fate> fates);

}  // namespace shoal::text

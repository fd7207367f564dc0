#include "shoal/text/rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::text {

DocumentLimit parse_limit(std::string_view text) {
  DocumentLimit limit;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, limit.value, std::chars_format::fixed);
  const bool percent = error == std::errc{} && std::string_view(rest, end) == "%";
  const bool fine = error == std::errc{} && (rest == end || percent) && std::isfinite(limit.value) && limit.value >= 0;
  limit.is_share = percent || text.find('.') != std::string_view::npos;
  if (percent) limit.value /= 100;
  if (!fine || (limit.is_share && limit.value > 1)) {
    throw Error(Code::invalid_argument, "'" + std::string(text) + "' is no number of documents and no share of them", {},
                "for example 5, 0.5 or 50%");
  }
  return limit;
}

std::string to_text(const DocumentLimit& limit) {
  char text[32];
  const double shown = limit.is_share ? 100 * limit.value : limit.value;
  char* const end = std::to_chars(text, text + sizeof text, shown, std::chars_format::general, 6).ptr;
  return std::string(text, end) + (limit.is_share ? " %" : "");
}

bool VocabularyRules::need_counts() const {
  const bool all = max_documents.is_share && max_documents.value >= 1;
  return min_documents.value > 0 || !all || top_words > 0 || most_words > 0 || pairs == Pairs::frequent;
}

void choose(const VocabularyRules& rules, std::uint64_t documents, std::span<const std::uint64_t> tokens, std::span<const std::uint32_t> in_documents,
            std::span<Fate> fates) {
  const double least = rules.min_documents.of(documents), most = rules.max_documents.of(documents);
  std::vector<std::uint32_t> left;
  for (std::uint32_t word = 0; word < fates.size(); ++word) {
    if (fates[word] != Fate::kept) continue;
    if (in_documents[word] < least) {
      fates[word] = Fate::rare;
    } else if (in_documents[word] > most) {
      fates[word] = Fate::common;
    } else {
      left.push_back(word);
    }
  }
  if (rules.top_words == 0 && rules.most_words == 0) return;
  std::stable_sort(left.begin(), left.end(), [&](std::uint32_t a, std::uint32_t b) { return tokens[a] > tokens[b]; });
  const std::size_t top = std::min<std::size_t>(rules.top_words, left.size());
  for (std::size_t i = 0; i < top; ++i) fates[left[i]] = Fate::top;
  if (rules.most_words == 0) return;
  for (std::size_t i = top + rules.most_words; i < left.size(); ++i) fates[left[i]] = Fate::beyond;
}

}  // namespace shoal::text

#include "shoal/core/text.h"
#include "shoal/text/source.h"

namespace shoal::text {
namespace {

std::string reason(Fate fate, std::uint64_t words, const VocabularyRules& rules) {
  const auto counted = [&](const char* nouns) { return show_count(words, nouns); };
  switch (fate) {
    case Fate::kept: break;
    case Fate::stop_word: return counted("stop words");
    case Fate::unknown: return counted("words") + " that the model does not know";
    case Fate::rare:
      return counted("words") + " in fewer than " + to_text(rules.min_documents) + (rules.min_documents.is_share ? " of the" : "") + " documents";
    case Fate::common:
      return counted("words") + " in more than " + to_text(rules.max_documents) + (rules.max_documents.is_share ? " of the" : "") + " documents";
    case Fate::top: return "the " + counted("most frequent words");
    case Fate::beyond: return counted("words") + " beyond the " + show_count(rules.most_words) + " most frequent";
  }
  return {};
}

}  // namespace

std::string dropped(const Reading& reading) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "dropped: " : ", ") + what; };
  if (reading.empty > 0) add(show_count(reading.empty, "empty documents"));
  for (std::size_t i = 0; i < kFates; ++i) {
    const auto& [words, tokens] = reading.dropped[i];
    if (words > 0) add(reason(static_cast<Fate>(i), words, reading.rules) + " (" + show_count(tokens, "tokens") + ")");
  }
  return text.empty() ? "nothing dropped" : text;
}

std::string sentence(const Reading& reading) {
  std::string text = "read " + show_count(reading.documents, "documents") + " of " + show_count(reading.words, "words") + ", " +
                     show_count(reading.tokens, "tokens") + ", from " + reading.files.front().filename().string();
  if (reading.files.size() > 1) text += " and " + show_count(reading.files.size() - 1, "more files");
  text += ", " + reading.form;
  if (reading.kept != reading.documents) text += "; " + show_count(reading.kept, "documents") + " here";
  if (reading.pairs > 0)
    text += "; " + show_count(reading.pairs, "frequent pairs") + " stand for two words in " + show_count(reading.pair_tokens, "places");
  if (reading.broken > 0) text += "; " + show_count(reading.broken, "documents") + " not quite UTF-8, where what is broken divides words";
  return text + "; " + dropped(reading);
}

}  // namespace shoal::text

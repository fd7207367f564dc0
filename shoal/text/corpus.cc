#include "shoal/text/corpus.h"

#include <optional>

namespace shoal::text {

Documents Documents::in(const std::filesystem::path& folder) {
  Documents documents;
  documents.words_ = {folder, "words"};
  return documents;
}

void Documents::append(std::span<const std::uint32_t> document) {
  offsets.push_back(offsets.back() + document.size());
  words_.append(document);
}

void Documents::finish() { words_.finish(); }

Corpus corpus_of(std::span<const std::vector<std::string>> documents, const data::Names* vocabulary) {
  Corpus corpus;
  if (vocabulary != nullptr) corpus.vocabulary = *vocabulary;
  std::vector<std::uint32_t> kept;
  for (const auto& document : documents) {
    kept.clear();
    for (const std::string& word : document) {
      const auto known = vocabulary == nullptr ? std::optional(corpus.vocabulary.number(word)) : vocabulary->find(word);
      if (known) kept.push_back(*known);
    }
    corpus.documents.append(kept);
    corpus.names.push_back(std::to_string(corpus.documents.size()));
  }
  corpus.documents.ordered = true;
  corpus.all_documents = corpus.documents.size();
  corpus.all_tokens = corpus.documents.tokens();
  corpus.frequencies.assign(corpus.vocabulary.size(), 0);
  for (const std::uint32_t word : corpus.documents.words()) ++corpus.frequencies[word];
  return corpus;
}

}  // namespace shoal::text

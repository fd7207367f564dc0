// What the tests of text/ need: documents as words again, and the words of a refusal (tests/data/files.h).
#pragma once

#include <string>
#include <vector>

#include "shoal/text/source.h"
#include "tests/data/files.h"

namespace shoal::text::test {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

inline std::vector<Words> words_of(const Corpus& corpus) {
  std::vector<Words> documents(corpus.documents.size());
  for (std::size_t d = 0; d < documents.size(); ++d) {
    for (const std::uint32_t word : corpus.documents[d]) documents[d].emplace_back(corpus.vocabulary[word]);
  }
  return documents;
}

inline Words vocabulary_of(const Corpus& corpus) {
  Words words;
  for (std::uint32_t word = 0; word < corpus.vocabulary.size(); ++word) words.emplace_back(corpus.vocabulary[word]);
  return words;
}

class Corpora : public data::test::Files {
 protected:
  std::vector<Words> read(const std::string& name, std::string_view text, Source source = {}) const {
    source.files = {file(name, text)};
    return words_of(read_corpus(source).first);
  }
  std::string said(const std::string& name, std::string_view text, Source source = {}) const {
    source.files = {file(name, text)};
    return sentence(read_corpus(source).second);
  }
  std::string refused(const std::string& name, std::string_view text, Source source = {}) const {
    return refusal([&] { read(name, text, source); });
  }
};

}  // namespace shoal::text::test

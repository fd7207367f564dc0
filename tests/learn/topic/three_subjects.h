// Documents about three subjects, as members have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/core/seed.h"
#include "shoal/data/read.h"
#include "shoal/learn/topic/prior.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

inline constexpr std::uint32_t kLdaWords = 60, kDocuments = 240;

// Every document is about one of three subjects, each with 20 words of its own.
inline std::vector<std::vector<std::uint32_t>> three_subjects() {
  std::vector<std::vector<std::uint32_t>> documents(kDocuments);
  for (std::uint32_t d = 0; d < kDocuments; ++d) {
    documents[d].resize(random_words(1, d, 0, 0)[0] % 40);
    for (std::uint32_t i = 0; i < documents[d].size(); ++i) documents[d][i] = d % 3 * 20 + random_words(1, d, i, 1)[0] % 20;
  }
  return documents;
}

inline text::Corpus share_of(const std::vector<std::vector<std::uint32_t>>& documents, const data::Share& share) {
  text::Corpus corpus;
  corpus.frequencies.resize(kLdaWords);
  for (std::uint32_t word = 0; word < kLdaWords; ++word) corpus.vocabulary.number("w" + std::to_string(word));
  for (std::uint64_t d = 0; d < documents.size(); ++d) {
    for (const std::uint32_t word : documents[d]) ++corpus.frequencies[word];
    corpus.all_tokens += documents[d].size();
    ++corpus.all_documents;
    if (!share.holds(d)) continue;
    corpus.documents.append(documents[d]);
    corpus.names.push_back(std::to_string(d + 1));
  }
  corpus.documents.finish();
  return corpus;
}

inline Prior flat(std::uint32_t topics) { return {std::vector<double>(topics, 1.0 / topics), 0.05}; }

}  // namespace shoal::learn::topic

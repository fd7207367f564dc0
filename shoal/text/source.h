// Text as people have it, and bags of words as other programs write them, into one member's share of a corpus.
//
//   auto [corpus, reading] = read_corpus({.files = {"docword.nips.txt.gz"}}, {rank, ranks});
//   puts(sentence(reading).c_str());
//
// Every member reads everything and keeps its share of the documents, so that all agree on vocabulary, frequencies and faults without a word; whose
// document is whose says data::Share, of those that have a word left. Where rules need counts (rules.h), words of all documents are kept until they
// are known.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/text/corpus.h"
#include "shoal/text/format.h"
#include "shoal/text/rules.h"
#include "shoal/text/tokens.h"

namespace shoal::text {

struct Source {
  std::vector<std::filesystem::path> files = {};  // or folders: all files in them
  Format format = Format::automatic;
  // of formats that have numbers for words: what they are called, one a line. Empty: found beside, or numbers it is
  std::filesystem::path words_file = {};
  std::string column = {};           // of format column: its name in the header, or its number from 1. Empty: the one with most text
  TokenRules tokens = {};
  VocabularyRules rules = {};
  // of a model: other words are dropped and counted, limits of documents and words do not apply. Outlives the reading
  const data::Names* vocabulary = nullptr;
  // of a vocabulary: words that it lacks keep their places as kUnknownWord, counted as dropped all the same, and documents without words stay, too
  bool keep_unknown = false;
  std::filesystem::path documents_in = {};  // a folder for documents without room in memory
};

// What was read, of all members, and what of it was dropped.
struct Reading {
  struct Dropped {
    std::uint64_t words = 0, tokens = 0;
  };
  std::vector<std::filesystem::path> files;
  std::string form;  // what the files were taken for: "UCI's bag of words with the words of vocab.nips.txt"
  std::uint64_t documents = 0, words = 0, tokens = 0;  // of the corpus
  std::uint64_t kept = 0;                              // documents of this member
  std::uint64_t empty = 0;                             // documents without a word that is kept
  std::uint64_t broken = 0;                            // documents that are not quite UTF-8
  std::uint64_t pairs = 0, pair_tokens = 0;            // frequent pairs that are words
  std::array<Dropped, kFates> dropped = {};            // by Fate
  VocabularyRules rules;
};

// "read 246,835 documents of 46,942 words, 7,184,873 tokens, from ...; dropped: 12 empty documents, 1,204 words in fewer than 5 documents (3,211
// tokens)".
std::string sentence(const Reading& reading);
std::string dropped(const Reading& reading);  // of that, what was dropped: "dropped: ...", or "nothing dropped"

// Throws Error{invalid_argument} for what cannot be read as that format ("file:line: what (hint)"), and where no document has a word that is kept;
// Error{io} where documents_in is full.
std::pair<Corpus, Reading> read_corpus(const Source& source, const data::Share& share = {});

// Documents as they come, so many at a time, the last batch with what is left; none is kept, and files may be pipes that do not end. The source has
// a vocabulary. Of a batch, documents and names are the batch's, all else is what has come so far. Words that it lacks are forgotten whenever there are a million of them, and counted anew where they come again. Throws as above.
Reading read_batches(const Source& source, std::uint64_t documents, const std::function<void(const Corpus& batch)>& take);

}  // namespace shoal::text

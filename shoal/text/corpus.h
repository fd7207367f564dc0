// Documents as sequences of words, and the words as numbers. Values; share across threads while nobody changes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shoal/data/names.h"
#include "shoal/data/number_store.h"

namespace shoal::text {

// In a document: a word that the vocabulary lacks (Source::keep_unknown).
inline constexpr std::uint32_t kUnknownWord = 0xFFFFFFFF;

// Documents one after another, with their words in memory or in a file without a name: then the kernel keeps of them what it has room for, and copies
// share the file. Threads: share while nobody appends.
class Documents {
 public:
  Documents() = default;  // words in memory
  // Words in a file in this folder. Throws Error{io} where it cannot be made, here and when the disk is full.
  static Documents in(const std::filesystem::path& folder);
  bool on_disk() const { return words_.on_disk(); }
  Documents none_alike() const { return on_disk() ? in(words_.folder()) : Documents(); }  // no document yet, words where these are

  void append(std::span<const std::uint32_t> document);
  void finish();  // before documents are read, after the last append; in memory it may be left out
  std::size_t size() const { return offsets.size() - 1; }
  std::uint64_t tokens() const { return offsets.back(); }
  std::span<const std::uint32_t> words() const { return words_.all(); }  // of all documents
  std::span<const std::uint32_t> operator[](std::size_t d) const { return words().subspan(offsets[d], offsets[d + 1] - offsets[d]); }

  std::vector<std::uint64_t> offsets = {0};  // document d has words()[offsets[d]] to words()[offsets[d + 1] - 1], a word for each token
  bool ordered = false;  // as the text has them; otherwise a bag's, in no order that says anything

 private:
  data::NumberStore<std::uint32_t> words_;  // numbers in a vocabulary
};

// What one member has of the documents of all, and what all know of them.
struct Corpus {
  Documents documents;  // this member's
  std::vector<std::string> names;  // of these: what the file calls them, with spaces for control characters, or their numbers in it from 1
  std::uint64_t all_documents = 0, all_tokens = 0;  // of all members
  data::Names vocabulary;  // of all members
  std::vector<std::uint64_t> frequencies;  // tokens of each word, of all members
  std::uint64_t digest = 0;  // of what was read: all documents in order, and the vocabulary; who has read other files has another one
};

// Documents that are lists of words already, all this member's, called by their numbers from 1; empty ones stay. vocabulary: whose words alone are
// kept; none: all are.
Corpus corpus_of(std::span<const std::vector<std::string>> documents, const data::Names* vocabulary = nullptr);

}  // namespace shoal::text

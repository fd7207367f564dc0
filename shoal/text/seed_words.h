// Words that a topic begins with, from a file that people write: a topic's number, from 0, and its words, between tabs or spaces; "#" begins a
// comment.
//
//   0<TAB>kernel driver device
//   3<TAB>font glyph
//
// Threads: as a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shoal/data/names.h"

namespace shoal::text {

struct SeedWords {
  struct Seed {
    std::uint32_t topic, word;
    friend bool operator==(const Seed&, const Seed&) = default;
  };
  std::vector<Seed> seeds;           // in the file's order; a word may be one of several topics
  std::vector<std::string> unknown;  // words that the vocabulary has not, in that order, each once
};

// Throws Error{invalid_argument} for lines that are none, topics beyond, and a file of which the vocabulary has no word.
SeedWords read_seed_words(const std::filesystem::path& file, const data::Names& vocabulary, std::uint32_t topics);
// "12 seed words of 3 topics; the vocabulary has no 'foo', 'bar'"
std::string sentence(const SeedWords& words);

}  // namespace shoal::text

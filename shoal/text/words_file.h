// What words are called whose documents have numbers for them: a file with a word a line, or with "number<TAB>word<TAB>tokens", as LightLDA's and
// gensim's dictionaries are. Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>

#include "shoal/data/names.h"

namespace shoal::text {

// Of these documents, by name: vocab.nips.txt for docword.nips.train.txt.gz. Empty: there is none beside them.
std::filesystem::path words_file_beside(const std::filesystem::path& documents);

// Words get "_" for spaces in them, which would divide them in texts. Throws Error{invalid_argument} for lines without a word, numbers that leave
// gaps, and words that are there twice.
data::Names read_words_file(const std::filesystem::path& file);

}  // namespace shoal::text

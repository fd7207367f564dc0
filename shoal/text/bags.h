// Bags of words as other programs write them, with numbers for words, into a Gathering. Each reader takes all lines, returns nothing, and throws
// Error{invalid_argument} with the place of the first fault.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "shoal/data/lines.h"
#include "shoal/data/read.h"
#include "shoal/text/gathering.h"

namespace shoal::text {

inline constexpr std::uint64_t kMostTokens = 1 << 28;  // of a document: of memory, a GiB

// The words of a format that has numbers for them, by these numbers.
class NumberedWords {
 public:
  // words_file: empty, and the numbers are what they are called. first: the first word's number, 0 or 1.
  NumberedWords(Gathering& gathering, const std::filesystem::path& words_file, std::uint32_t first);

  std::uint32_t size() const { return size_; }  // 0: not known
  const std::filesystem::path& file() const { return file_; }
  // The fault where there is no such word, or where it is too often there.
  data::Verdict add(std::uint64_t number, std::uint64_t count);

 private:
  Gathering& gathering_;
  std::filesystem::path file_;
  std::uint32_t first_, size_ = 0;
};

struct UciEntry {
  std::uint64_t document = 0, word = 0, count = 0;
};
// "document word count". Pure.
data::Verdict parse_uci(std::string_view line, UciEntry& entry);

void read_uci(data::Lines& lines, NumberedWords& words, Gathering& gathering);            // entries of a document stand together, documents ascend
void read_lda_c(data::Lines& lines, NumberedWords& words, Gathering& gathering);
void read_labelled_counts(data::Lines& lines, NumberedWords& words, Gathering& gathering);  // LIBSVM's and LightLDA's
// Rows are documents. Reads the file again, as a matrix.
void read_matrix(const std::filesystem::path& file, NumberedWords& words, Gathering& gathering);

}  // namespace shoal::text

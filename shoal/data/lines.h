// The lines of text files, one file after another, packed or not (unpacked_file.h), each with its place for who finds a mistake in it.
// Memory: a block, or twice the longest line if that is more. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/data/unpacked_file.h"

namespace shoal::data {

class Lines {
 public:
  static constexpr std::size_t kLongest = 64 << 20;  // bytes of a line: a dense sample of some millions of numbers

  // Throws Error{invalid_argument} where there is no file at all; each file is opened when its turn has come.
  explicit Lines(std::vector<std::filesystem::path> files, std::size_t longest = kLongest);

  // The next line without its line break ("\n" or "\r\n"; the last line may have none) and, at the head of a file, without UTF-8's byte order
  // mark; valid until the next call. False after the last line of the last file. Throws UnpackedFile's errors, and Error{invalid_argument} for a
  // line that is too long or a file that has zero bytes and so is no text.
  bool next(std::string_view& line);

  // Of the line that next() gave.
  std::string place() const;  // "ratings.csv:17"
  std::uint64_t number() const { return number_; }  // from 1 in each file
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  bool fill();  // more of the file behind what is not taken yet; false at its end
  bool open_next();  // false after the last file
  std::string_view take(std::size_t length, std::size_t line_break);
  [[noreturn]] void refuse_longer() const;
  std::string place_of(std::uint64_t number) const;

  std::vector<std::filesystem::path> files_;
  std::size_t longest_;
  std::size_t opened_ = 0;  // files so far
  std::unique_ptr<UnpackedFile> file_;  // none before the first and after the last
  std::vector<char> buffer_;
  std::size_t begin_ = 0, searched_ = 0, end_ = 0;  // in buffer_: not taken yet; of that, known to have no line break; filled
  std::uint64_t number_ = 0;
};

}  // namespace shoal::data

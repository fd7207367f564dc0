// The lines of text files, one file after another, packed or not (unpacked_file.h), each with its place for who finds a mistake in it.
// Memory: a block, or twice the longest line if that is more. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  std::string place() const { return place_of(given_); }  // "ratings.csv:17"
  std::uint64_t number() const { return given_.number; }  // from 1 in each file
  const std::vector<std::filesystem::path>& files() const { return files_; }

  // The lines that next() will give, so that a look at them costs nothing of what can be read once, such as a pipe: as many as there are up to `most`
  // lines and about a megabyte.
  struct Ahead {
    std::string text;
    std::uint64_t number;  // in its file
    std::size_t file;  // of files()
  };
  const std::deque<Ahead>& ahead(std::size_t most);

 private:
  struct Position {
    std::size_t file = 0;  // of files_
    std::uint64_t number = 0;
  };
  bool read(std::string_view& line);
  bool fill();  // more of the file behind what is not taken yet; false at its end
  bool open_next();  // false after the last file
  std::string_view take(std::size_t length, std::size_t line_break);
  [[noreturn]] void refuse_longer(Position line) const;
  std::string place_of(Position line) const;

  std::vector<std::filesystem::path> files_;
  std::size_t longest_;
  std::size_t opened_ = 0;  // files so far
  std::unique_ptr<UnpackedFile> file_;  // none before the first and after the last
  std::vector<char> buffer_;
  std::size_t begin_ = 0, searched_ = 0, end_ = 0;  // in buffer_: not taken yet; of that, known to have no line break; filled
  Position read_, given_;  // the last line read from the files, and the last that next() gave
  std::deque<Ahead> ahead_;  // what was read and not given yet
  std::string given_text_;
};

}  // namespace shoal::data

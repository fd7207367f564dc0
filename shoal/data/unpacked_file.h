// A file's bytes as they were before gzip, bzip2, xz or zstd packed them: its first bytes say which of them did, not its name. Files in
// several parts, as parallel packers and `cat a.gz b.gz` make them, are read to their end.
// Memory: a block of the file, and what the format asks for, at most 512 MiB. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace shoal::data {

class Unpacker;  // one format; unpackers.h

class UnpackedFile {
 public:
  // Throws Error{invalid_argument} where there is no such file, and for an archive of several files (zip).
  explicit UnpackedFile(std::filesystem::path file);
  ~UnpackedFile();
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Fills `into` and returns how many bytes it has; fewer than it holds, or none, only at the file's end. Throws Error{invalid_argument} where
  // what is packed is damaged or cut short, Error{io} where the file cannot be read.
  std::size_t read(std::span<char> into);
  // What there is, at most as much as `into` holds; none only at the end. A pipe that is still being written to is not waited for longer than until
  // it has something, unless what comes through it is packed.
  std::size_t read_some(std::span<char> into);

 private:
  void refill();  // of `packed_`; it stays empty at the file's end
  std::size_t read_file(std::span<char> into, std::size_t least) const;  // fewer than `least` only at the end

  std::filesystem::path file_;
  int descriptor_ = -1;
  std::array<char, 64 << 10> block_;
  std::span<const char> packed_;        // what of block_ is not used yet
  std::unique_ptr<Unpacker> unpacker_;  // none where nothing is packed
  bool between_parts_ = true;
};

}  // namespace shoal::data

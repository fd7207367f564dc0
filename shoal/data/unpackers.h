// The formats in which files are packed, each as a step from packed bytes to plain ones. Only unpacked_file.cc needs them.
// Threads: one at a time.
#pragma once

#include <memory>
#include <span>
#include <string_view>

namespace shoal::data {

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  virtual const char* format() const = 0;  // "gzip"
  // Takes from the front of `packed` and puts at the front of `plain`, which both move on. True at the end of a part; the next call begins
  // another. Throws what is wrong as a std::runtime_error in the library's words.
  virtual bool step(std::span<const char>& packed, std::span<char>& plain) = 0;
};

// By the first bytes of a file; none where they are no format's.
std::unique_ptr<Unpacker> unpacker_for(std::string_view first_bytes);

}  // namespace shoal::data

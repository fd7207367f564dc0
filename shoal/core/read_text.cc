#include "shoal/core/read_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "shoal/core/error.h"

namespace shoal {

std::string read_text(const std::filesystem::path& file, std::size_t most) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  constexpr std::size_t kPiece = 64 << 10;  // files are small, mostly: not the most at once
  for (std::size_t had = 0; in && had <= most; had = text.size()) {
    text.resize(std::min(had + std::max(had, kPiece), most + 1));
    in.read(text.data() + had, static_cast<std::streamsize>(text.size() - had));
    text.resize(had + static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof() && in.fail()) {
    throw Error(Code::invalid_argument, std::string("cannot be read: ") + std::strerror(errno), file.string());
  }
  return text;
}

std::string read_whole_text(const std::filesystem::path& file, std::size_t most) {
  std::string text = read_text(file, most);
  if (text.size() > most) throw Error(Code::invalid_argument, "is larger than " + std::to_string(most >> 20) + " MiB", file.string());
  return text;
}

}  // namespace shoal

#include "shoal/data/unpacked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/data/unpackers.h"

namespace shoal::data {
namespace {

constexpr std::size_t kTold = 8;  // bytes that tell how a file is packed

}  // namespace

UnpackedFile::UnpackedFile(std::filesystem::path file) : file_(std::move(file)) {
  descriptor_ = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw Error(Code::invalid_argument, std::string("cannot be opened: ") + std::strerror(errno), file_.string());
  try {
    struct stat about{};
    if (::fstat(descriptor_, &about) == 0 && S_ISDIR(about.st_mode)) {
      throw Error(Code::invalid_argument, "is a folder", file_.string(), "name the files in it");
    }
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
    packed_ = std::span(block_).first(read_file(block_, kTold));
    const std::string_view first(packed_.data(), packed_.size());
    if (first.starts_with("PK\x03\x04")) throw Error(Code::invalid_argument, "is a zip archive", file_.string(), "unpack it first");
    unpacker_ = unpacker_for(first);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

UnpackedFile::~UnpackedFile() { ::close(descriptor_); }

std::size_t UnpackedFile::read_file(std::span<char> into, std::size_t least) const {
  std::size_t filled = 0;
  while (filled < least) {
    const ssize_t got = ::read(descriptor_, into.data() + filled, into.size() - filled);
    if (got == 0) break;
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      throw Error(Code::io, std::string("cannot be read: ") + std::strerror(errno), file_.string());
    }
  }
  return filled;
}

void UnpackedFile::refill() { packed_ = std::span(block_).first(read_file(block_, 1)); }

std::size_t UnpackedFile::read_some(std::span<char> into) {
  if (unpacker_) return read(into);
  return packed_.empty() ? read_file(into, std::min<std::size_t>(1, into.size())) : read(into.first(std::min(into.size(), packed_.size())));
}

std::size_t UnpackedFile::read(std::span<char> into) {
  const std::size_t wanted = into.size();
  if (!unpacker_) {  // what was looked at to tell the format, then straight from the file
    const std::size_t looked_at = std::min(packed_.size(), wanted);
    std::memcpy(into.data(), packed_.data(), looked_at);
    packed_ = packed_.subspan(looked_at);
    return looked_at + read_file(into.subspan(looked_at), wanted - looked_at);
  }
  while (!into.empty()) {
    if (packed_.empty()) refill();
    if (packed_.empty() && between_parts_) break;
    const bool at_end = packed_.empty();
    const std::size_t packed = packed_.size(), room = into.size();
    try {
      between_parts_ = unpacker_->step(packed_, into);
    } catch (const std::runtime_error& wrong) {
      throw Error(Code::invalid_argument, std::string("its ") + unpacker_->format() + " data is damaged: " + wrong.what(), file_.string(),
                  "copy or pack it again");
    }
    if (at_end && !between_parts_ && packed == packed_.size() && room == into.size()) {
      throw Error(Code::invalid_argument, std::string("ends inside its ") + unpacker_->format() + " data, so it was cut short", file_.string(),
                  "copy or pack it again");
    }
  }
  return wanted - into.size();
}

}  // namespace shoal::data

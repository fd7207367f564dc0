#include "shoal/data/spilled_numbers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/unnamed_file.h"

namespace shoal::data {
namespace {

constexpr std::size_t kBuffered = 1 << 20;  // bytes that are written at once

}  // namespace

SpilledNumbers::SpilledNumbers(const std::filesystem::path& folder, std::string what) : folder_(folder), what_(std::move(what)) {
  file_ = open_unnamed(folder, what_);
  if (file_ < 0) refuse("no file can be made here");
}

SpilledNumbers::~SpilledNumbers() {
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
  ::close(file_);
}

void SpilledNumbers::append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBuffered) write();
}

void SpilledNumbers::map() {
  write();
  buffer_ = {};
  if (size_ == 0) return;
  void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) refuse(what_ + " cannot be mapped into memory");
  mapped_ = at;
}

void SpilledNumbers::refuse(const std::string& what) const { throw Error(Code::io, what + ": " + std::strerror(errno), folder_.string()); }

void SpilledNumbers::write() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) refuse(what_ + " cannot be written");
    done += static_cast<std::size_t>(wrote);
  }
  size_ += buffer_.size();
  buffer_.clear();
}

}  // namespace shoal::data

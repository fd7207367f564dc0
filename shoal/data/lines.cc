#include "shoal/data/lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::data {
namespace {

constexpr std::size_t kBlock = 256 << 10;  // fits L2 beside what is made of it
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Lines::Lines(std::vector<std::filesystem::path> files, std::size_t longest) : files_(std::move(files)), longest_(longest), buffer_(kBlock) {
  if (files_.empty()) throw Error(Code::invalid_argument, "no file to read");
}

bool Lines::next(std::string_view& line) {
  for (;;) {
    if (const void* found = std::memchr(buffer_.data() + searched_, '\n', end_ - searched_)) {
      line = take(static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) - begin_, 1);
      return true;
    }
    searched_ = end_;
    if (file_ && fill()) continue;
    if (begin_ < end_) {
      line = take(end_ - begin_, 0);
      return true;
    }
    if (!open_next()) return false;
  }
}

std::string_view Lines::take(std::size_t length, std::size_t line_break) {
  std::string_view line(buffer_.data() + begin_, length);
  begin_ += length + line_break;
  searched_ = begin_;
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.size() > longest_) refuse_longer();
  return line;
}

bool Lines::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  searched_ -= begin_;
  begin_ = 0;
  if (end_ > longest_ + kByteOrderMark.size() + 1) {  // without a break in sight; 1: a '\r'
    ++number_;
    refuse_longer();
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const std::size_t got = file_->read(std::span(buffer_).subspan(end_));
  if (const void* zero = std::memchr(buffer_.data() + end_, 0, got)) {
    const auto before = std::count(buffer_.begin(), buffer_.begin() + (static_cast<const char*>(zero) - buffer_.data()), '\n');
    throw Error(Code::invalid_argument, "has a zero byte, so it is no text", place_of(number_ + static_cast<std::uint64_t>(before) + 1),
                "UTF-8 text is read, also packed by gzip, bzip2, xz or zstd");
  }
  end_ += got;
  return got > 0;
}

bool Lines::open_next() {
  file_.reset();
  if (opened_ == files_.size()) return false;
  number_ = 0;
  file_ = std::make_unique<UnpackedFile>(files_[opened_++]);
  return true;
}

void Lines::refuse_longer() const {
  throw Error(Code::invalid_argument, "the line is longer than " + show_size(static_cast<double>(longest_)), place(),
              "is this a text file with line breaks?");
}

std::string Lines::place_of(std::uint64_t number) const {
  return opened_ == 0 ? std::string() : files_[opened_ - 1].string() + ":" + std::to_string(number);
}
std::string Lines::place() const { return place_of(number_); }

}  // namespace shoal::data

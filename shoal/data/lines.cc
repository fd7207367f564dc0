#include "shoal/data/lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::data {
namespace {

constexpr std::size_t kBlock = 256 << 10;  // fits L2 beside what is made of it
constexpr std::size_t kAhead = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Lines::Lines(std::vector<std::filesystem::path> files, std::size_t longest) : files_(std::move(files)), longest_(longest), buffer_(kBlock) {
  if (files_.empty()) throw Error(Code::invalid_argument, "no file to read");
}

bool Lines::next(std::string_view& line) {
  if (ahead_.empty()) {
    if (!read(line)) return false;
    given_ = read_;
    return true;
  }
  Ahead& first = ahead_.front();
  given_text_ = std::move(first.text);
  given_ = {first.file, first.number};
  ahead_.pop_front();
  line = given_text_;
  return true;
}

const std::deque<Lines::Ahead>& Lines::ahead(std::size_t most) {
  std::size_t bytes = 0;
  for (const Ahead& known : ahead_) bytes += known.text.size();
  for (std::string_view line; ahead_.size() < most && bytes < kAhead && read(line); bytes += line.size()) {
    ahead_.push_back({std::string(line), read_.number, read_.file});
  }
  return ahead_;
}

bool Lines::read(std::string_view& line) {
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
  ++read_.number;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (read_.number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.size() > longest_) refuse_longer(read_);
  return line;
}

bool Lines::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  searched_ -= begin_;
  begin_ = 0;
  if (end_ > longest_ + kByteOrderMark.size() + 1) refuse_longer({read_.file, read_.number + 1});  // no break in sight; 1: a '\r'
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const std::size_t got = file_->read_some(std::span(buffer_).subspan(end_));
  if (const std::size_t zero = std::string_view(buffer_.data() + end_, got).find('\0'); zero != std::string_view::npos) {
    const auto before = static_cast<std::uint64_t>(std::count(buffer_.data(), buffer_.data() + end_ + zero, '\n'));
    throw Error(Code::invalid_argument, "has a zero byte, so it is no text", place_of({read_.file, read_.number + before + 1}),
                "UTF-8 text is read, also packed by gzip, bzip2, xz or zstd");
  }
  end_ += got;
  return got > 0;
}

bool Lines::open_next() {
  file_.reset();
  if (opened_ == files_.size()) return false;
  read_ = {opened_, 0};
  file_ = std::make_unique<UnpackedFile>(files_[opened_++]);
  return true;
}

void Lines::refuse_longer(Position line) const {
  throw Error(Code::invalid_argument, "the line is longer than " + show_size(static_cast<double>(longest_)), place_of(line),
              "is this a text file with line breaks?");
}

std::string Lines::place_of(Position line) const { return files_[line.file].string() + ":" + std::to_string(line.number); }

}  // namespace shoal::data

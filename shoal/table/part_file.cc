#include "shoal/table/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::table {
namespace {

namespace fs = std::filesystem;
constexpr std::array<char, 8> kMagic{'S', 'H', 'O', 'A', 'L', 'T', 'A', 'B'};
constexpr std::uint64_t kLongestName = 64 * 1024, kLongestChunk = std::uint64_t{1} << 30;

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::size_t chunk_row_bytes(const Spec& spec) { return sizeof(Key) + (spec.width + state_width(spec.rule, spec.width)) * size_of(spec.type); }

PartWriter::PartWriter(const fs::path& folder, const Cut& cut, std::uint32_t part)
    : file_(part_file(folder, cut, part)), aside_(folder / ("." + file_.filename().string() + "." + std::to_string(::getpid()))),
      row_bytes_(chunk_row_bytes(cut.spec)) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(error.value());
  descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(errno);
  const std::string text = text_of(cut);
  write(std::as_bytes(std::span(kMagic)));
  write_number(text.size());
  write(std::as_bytes(std::span(text)));
  write_number(part);
}

PartWriter::~PartWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(aside_.c_str());
}

void PartWriter::append(const Bytes& chunk) {
  write_number(chunk.size());
  write(chunk);
  hash_.add_words(chunk);
  rows_ += chunk.size() / row_bytes_;
}

void PartWriter::finish() {
  write_number(0);
  write_number(rows_);
  write_number(hash_.value());
  if (::fsync(descriptor_) != 0) refuse(errno);
  if (::rename(aside_.c_str(), file_.c_str()) != 0) refuse(errno);
  ::close(std::exchange(descriptor_, -1));
  sync_folder(file_.parent_path());
}

void PartWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) refuse(errno);
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void PartWriter::refuse(int error) const {
  throw Error(Code::io, "cannot be written: " + std::generic_category().message(error), file_.string());
}

PartReader::PartReader(const fs::path& folder, const Cut& cut, std::uint32_t part)
    : file_(part_file(folder, cut, part)), row_bytes_(chunk_row_bytes(cut.spec)), in_(file_, std::ios::binary) {
  std::error_code none;
  size_ = fs::file_size(file_, none);
  if (!in_ || none) throw Error(Code::io, "cannot be read", file_.string());
  std::array<char, 8> magic{};
  read(std::as_writable_bytes(std::span(magic)));
  if (magic != kMagic) refuse("is no part of a snapshot");
  std::string text(std::min(number(), kLongestName), '\0');
  read(std::as_writable_bytes(std::span(text)));
  const Cut here = cut_from(text, file_);
  const bool same_rows = here.spec.type == cut.spec.type && here.spec.width == cut.spec.width && same_kind(here.spec.rule, cut.spec.rule);
  if (!same_rows || here.id != cut.id || here.clock != cut.clock || here.parts != cut.parts || number() != part) {
    refuse("belongs to another snapshot");
  }
}

Bytes PartReader::next() {
  const std::uint64_t length = number();
  if (length == 0) {
    const std::uint64_t rows = number(), hash = number();
    if (rows != rows_ || hash != hash_.value()) refuse("damaged: its contents are not what was written");
    if (in_.peek() != std::ifstream::traits_type::eof()) refuse("damaged: something follows its end");
    return {};
  }
  if (length > std::min(size_, kLongestChunk) || length % row_bytes_ != 0) refuse("damaged: a chunk of " + std::to_string(length) + " bytes");
  Bytes chunk(length);
  read(chunk);
  hash_.add_words(chunk);
  rows_ += length / row_bytes_;
  return chunk;
}

std::uint64_t PartReader::number() {
  std::uint64_t value = 0;
  read(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void PartReader::read(std::span<std::byte> bytes) {
  in_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in_) refuse("is cut short");
}

void PartReader::refuse(const std::string& what) const {
  throw Error(Code::invalid_argument, what, file_.string(), "take the snapshot again, or name another");
}

}  // namespace shoal::table

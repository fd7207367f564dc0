#include "shoal/learn/topic/blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/unnamed_file.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint64_t kPage = 4096;  // where what changes begins in the file

// Goes through a block's arrays as the file has them: part(data, bytes). Those that change are the last, from the boundary of a page on.
template <class B, class Part>
void each_unchanging(B& block, const Part& part) {
  part(block.runs.data(), block.runs.size() * sizeof(Block::Run));
  for (auto* array : {&block.slices, &block.lines, &block.positions, &block.first_line}) part(array->data(), array->size() * sizeof(std::uint32_t));
}
template <class B, class Part>
void each_changing(B& block, const Part& part) {
  part(block.topics.data(), block.topics.size() * sizeof(Topic));
  part(block.tables.data(), block.tables.size() * sizeof(std::uint32_t));
}

template <class Call>
bool moved_all(std::uint64_t at, std::size_t bytes, const Call& call) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = call(done, at + done, bytes - done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = EIO;
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace

std::vector<std::size_t> parts_of(const text::Documents& documents, std::size_t begin, std::size_t end, std::uint32_t parts) {
  const std::uint64_t first = documents.offsets[begin], tokens = documents.offsets[end] - first;
  std::vector<std::size_t> begins{begin};
  for (std::uint32_t part = 1; part < parts; ++part) {
    const std::uint64_t until = first + tokens * part / parts;
    const auto from = documents.offsets.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto past = std::upper_bound(from, documents.offsets.begin() + static_cast<std::ptrdiff_t>(end), until);
    const auto last = static_cast<std::size_t>(past - documents.offsets.begin());  // behind the one that begins before it
    begins.push_back(std::clamp(last == 0 ? 0 : last - 1, begins.back(), end));
  }
  begins.push_back(end);
  return begins;
}

void leave_to_disk(const text::Documents& documents) {
  const auto words = documents.words();
  if (!documents.on_disk() || words.empty()) return;
  // A mapping of a file: it begins with a page, and what is let go is still in the file.
  ::madvise(const_cast<std::uint32_t*>(words.data()), words.size_bytes(), MADV_DONTNEED);
}

Blocks::Blocks(std::uint32_t count, const std::filesystem::path& folder) : count_(count), folder_(folder) {
  if (count_ == 1) return;
  file_ = open_unnamed(folder_, "blocks");
  if (file_ < 0) refuse("no file can be made here");
}

Blocks::~Blocks() {
  if (moving_.valid()) moving_.wait();
  if (file_ >= 0) ::close(file_);
}

void Blocks::append(Block block, std::size_t first_document) {
  first_documents_.push_back(first_document);
  tokens_ += block.tokens();
  if (count_ == 1) {
    current_ = std::move(block);
    in_current_ = 0;
    return;
  }
  other_memory_ = std::max(other_memory_, block.memory());
  Extent extent{end_, block.runs.size(), block.slices.size(), block.topics.size(), block.first_line.size(), block.tables.size(),
                block.shift, block.longest_table, block.first_long, block.first_whole};
  write(block, extent, true);
  const auto pages = [](std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
  std::uint64_t unchanging = 0, changing = 0;
  each_unchanging(block, [&](const void*, std::size_t bytes) { unchanging += bytes; });
  each_changing(block, [&](const void*, std::size_t bytes) { changing += bytes; });
  end_ += pages(unchanging) + pages(changing);
  extents_.push_back(extent);
}

Block& Blocks::enter(std::uint32_t block) {
  if (block == in_current_) return current_;
  if (moving_.valid()) moving_.get();
  if (in_other_ != block) {
    read(other_, extents_[block]);
    in_other_ = block;
  }
  std::swap(current_, other_);
  std::swap(in_current_, in_other_);
  const bool write_back = std::exchange(changed_, false) && in_other_ != kNone;
  const std::uint32_t left = in_other_, next = (block + 1) % count_;
  in_other_ = next;
  moving_ = std::async(std::launch::async, [this, write_back, left, next] {
    if (write_back) write(other_, extents_[left], false);
    if (left != next) read(other_, extents_[next]);
  });
  return current_;
}

void Blocks::write(const Block& block, const Extent& extent, bool whole) const {
  std::uint64_t at = extent.begin;
  const auto part = [&](const void* data, std::size_t bytes) {
    const auto call = [&](std::size_t done, std::uint64_t to, std::size_t left) {
      return ::pwrite(file_, static_cast<const std::byte*>(data) + done, left, static_cast<off_t>(to));
    };
    if (!moved_all(at, bytes, call)) refuse("blocks of documents cannot be written");
    at += bytes;
  };
  if (whole) {
    each_unchanging(block, part);
  } else {
    each_unchanging(block, [&](const void*, std::size_t bytes) { at += bytes; });
  }
  at = (at + kPage - 1) / kPage * kPage;
  each_changing(block, part);
}

void Blocks::read(Block& block, const Extent& extent) const {
  block.shift = extent.shift;
  block.longest_table = extent.longest_table;
  block.first_long = extent.first_long;
  block.first_whole = extent.first_whole;
  block.runs.resize(extent.runs);
  block.slices.resize(extent.slices);
  for (auto* array : {&block.lines, &block.positions, &block.topics}) array->resize(extent.tokens);
  block.first_line.resize(extent.documents);
  if (block.tables.size() != extent.entries) {
    block.tables = {};  // the old ones go first
    block.tables = Aligned<std::uint32_t>(extent.entries);
  }
  std::uint64_t at = extent.begin;
  const auto part = [&](void* data, std::size_t bytes) {
    const auto call = [&](std::size_t done, std::uint64_t from, std::size_t left) {
      return ::pread(file_, static_cast<std::byte*>(data) + done, left, static_cast<off_t>(from));
    };
    if (!moved_all(at, bytes, call)) refuse("blocks of documents cannot be read");
    at += bytes;
  };
  each_unchanging(block, part);
  at = (at + kPage - 1) / kPage * kPage;
  each_changing(block, part);
}

void Blocks::refuse(const char* what) const { throw Error(Code::io, std::string(what) + ": " + std::strerror(errno), folder_.string()); }

}  // namespace shoal::learn::topic

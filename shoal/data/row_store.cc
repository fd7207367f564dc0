#include "shoal/data/row_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "shoal/core/error.h"
#include "shoal/core/unnamed_file.h"

namespace shoal::data {
namespace {

constexpr std::size_t kBuffered = 1 << 20;  // bytes that are written at once

}  // namespace

class SpilledNumbers {
 public:
  explicit SpilledNumbers(const std::filesystem::path& folder) : folder_(folder) {
    file_ = open_unnamed(folder, "rows");
    if (file_ < 0) refuse("no file can be made here");
  }
  ~SpilledNumbers() {
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
    ::close(file_);
  }
  SpilledNumbers(const SpilledNumbers&) = delete;

  void append(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kBuffered) write();
  }
  void map() {
    write();
    buffer_ = {};
    if (size_ == 0) return;
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) refuse("rows cannot be mapped into memory");
    mapped_ = at;
  }
  template <class Number>
  std::span<const Number> numbers() const {
    return {static_cast<const Number*>(mapped_), mapped_ == nullptr ? 0 : size_ / sizeof(Number)};
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw Error(Code::io, what + ": " + std::strerror(errno), folder_.string()); }
  void write() {
    for (std::size_t done = 0; done < buffer_.size();) {
      const ssize_t wrote = ::write(file_, buffer_.data() + done, buffer_.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) refuse("rows cannot be written");
      done += static_cast<std::size_t>(wrote);
    }
    size_ += buffer_.size();
    buffer_.clear();
  }

  std::filesystem::path folder_;
  int file_ = -1;
  std::vector<std::byte> buffer_;
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
};

RowStore RowStore::in(const std::filesystem::path& folder) {
  RowStore store;
  store.columns_ = std::make_shared<SpilledNumbers>(folder);
  store.values_ = std::make_shared<SpilledNumbers>(folder);
  return store;
}

void RowStore::append(const SparseRow& row) {
  labels.push_back(row.label);
  offsets_.push_back(offsets_.back() + row.columns.size());
  if (on_disk()) {
    columns_->append(std::as_bytes(row.columns));
    values_->append(std::as_bytes(row.values));
    return;
  }
  kept_columns_.insert(kept_columns_.end(), row.columns.begin(), row.columns.end());
  kept_values_.insert(kept_values_.end(), row.values.begin(), row.values.end());
}

void RowStore::finish() {
  if (!on_disk()) return;
  columns_->map();
  values_->map();
}

SparseSlice RowStore::all() const {
  if (on_disk()) return {offsets_, columns_->numbers<std::uint32_t>(), values_->numbers<float>(), labels};
  return {offsets_, kept_columns_, kept_values_, labels};
}

}  // namespace shoal::data

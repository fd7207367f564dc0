// Numbers in a file without a name, written in order and then mapped: the kernel keeps of them what it has room for. The file goes with this, however
// the process ends. Threads: share while nobody appends.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace shoal::data {

class SpilledNumbers {
 public:
  // In a file in this folder. Throws Error{io} where it cannot be made, here and when the disk is full. what: "rows", for error lines.
  SpilledNumbers(const std::filesystem::path& folder, std::string what);
  ~SpilledNumbers();
  SpilledNumbers(const SpilledNumbers&) = delete;
  SpilledNumbers& operator=(const SpilledNumbers&) = delete;

  void append(std::span<const std::byte> bytes);
  const std::filesystem::path& folder() const { return folder_; }
  void map();  // before they are read, after the last append
  template <class Number>
  std::span<const Number> numbers() const {
    return {static_cast<const Number*>(mapped_), mapped_ == nullptr ? 0 : size_ / sizeof(Number)};
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  void write();

  std::filesystem::path folder_;
  std::string what_;
  int file_ = -1;
  std::vector<std::byte> buffer_;
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
};

}  // namespace shoal::data

// Numbers one behind another in memory, or in a file (spilled_numbers.h): what rows, triples and documents lie in. Copies share the file.
// Threads: share while nobody appends.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shoal/data/spilled_numbers.h"

namespace shoal::data {

template <class Number>
class NumberStore {
 public:
  NumberStore() = default;  // in memory
  // In a file in this folder; throws Error{io} as SpilledNumbers does. what: "rows", for error lines.
  NumberStore(const std::filesystem::path& folder, std::string what) : spilled_(std::make_shared<SpilledNumbers>(folder, std::move(what))) {}

  bool on_disk() const { return spilled_ != nullptr; }
  const std::filesystem::path& folder() const { return spilled_->folder(); }  // of those on disk
  void append(std::span<const Number> numbers) {
    if (spilled_) return spilled_->append(std::as_bytes(numbers));
    kept_.insert(kept_.end(), numbers.begin(), numbers.end());
  }
  void finish() {  // before they are read, after the last append; in memory it may be left out
    if (spilled_) spilled_->map();
  }
  std::span<const Number> all() const { return spilled_ ? spilled_->numbers<Number>() : std::span<const Number>(kept_); }

 private:
  std::vector<Number> kept_;  // unless they are in a file
  std::shared_ptr<SpilledNumbers> spilled_;
};

}  // namespace shoal::data

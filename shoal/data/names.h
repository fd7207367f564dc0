// Names as numbers: each different one gets the next number, in the order in which they come. Users, items, words, pages.
// Open addressing; names stand one after another in one string. Threads: as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::data {

class Names {
 public:
  std::uint32_t number(std::string_view name);  // of a new name: size() until now. Throws Error{invalid_argument} for the 2^32nd
  std::optional<std::uint32_t> find(std::string_view name) const;
  std::string_view operator[](std::uint32_t number) const {  // valid until a name is added
    const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }

 private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
  struct Slot {
    std::uint32_t hash, number = kEmpty;
  };
  static std::uint32_t hash_of(std::string_view name);
  std::size_t place_of(std::string_view name, std::uint32_t hash) const;  // its slot, or the empty one where it belongs
  void grow();

  std::string text_;
  std::vector<std::uint64_t> ends_;                // in text_, by number
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half of them in use
};

}  // namespace shoal::data

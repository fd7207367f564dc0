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
  std::uint64_t digest() const;  // FNV-1a of all names, each with a line break behind it, as they stand in a file
  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::size_t memory() const { return text_.capacity() + ends_.capacity() * sizeof(ends_[0]) + slots_.capacity() * sizeof(Slot); }  // bytes

 private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
  // What tells names apart before their letters are compared is up to eight bytes the name itself, so that most are found with one access.
  struct Slot {
    std::uint64_t head = 0;
    std::uint32_t length = 0, number = kEmpty;
  };
  static Slot slot_for(std::string_view name);                          // without its number
  std::size_t place_of(std::string_view name, const Slot& slot) const;  // where it is, or the empty slot where it belongs
  void grow();

  std::string text_;
  std::vector<std::uint64_t> ends_;                  // in text_, by number
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half of them in use
  int shift_ = 64 - 6;                               // of a hash, which leaves the number of a slot
};

}  // namespace shoal::data

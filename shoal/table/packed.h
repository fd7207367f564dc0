// Numbers and words one behind the other: the body of a message for which a form of its own is not worth it. Values.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/table/message.h"

namespace shoal::table {

class Packed {
 public:
  Packed& operator<<(std::uint64_t number) {
    numbers_.push_back(number);
    return *this;
  }
  Packed& operator<<(const std::string& text) {
    const std::size_t begin = numbers_.size() + 1;
    numbers_.push_back(text.size());
    numbers_.resize(begin + (text.size() + sizeof(Key) - 1) / sizeof(Key));
    std::memcpy(numbers_.data() + begin, text.data(), text.size());
    return *this;
  }
  Message message(Kind kind, std::uint64_t table) const {
    Message message = Message::of_rows(kind, table, numbers_.size(), 0);
    std::ranges::copy(numbers_, message.key_places());
    return message;
  }

 private:
  std::vector<Key> numbers_;
};

// Takes them out again. Throws Error{mismatch} where there are no more.
class Unpacked {
 public:
  explicit Unpacked(std::span<const Key> numbers) : numbers_(numbers) {}
  std::uint64_t number() {
    require(1);
    const std::uint64_t number = numbers_.front();
    numbers_ = numbers_.subspan(1);
    return number;
  }
  std::string text() {
    const std::uint64_t size = number();
    require(size / sizeof(Key));
    const std::size_t words = (size + sizeof(Key) - 1) / sizeof(Key);
    require(words);
    std::string text(size, '\0');
    std::memcpy(text.data(), numbers_.data(), size);
    numbers_ = numbers_.subspan(words);
    return text;
  }

 private:
  void require(std::size_t words) const {
    if (words > numbers_.size()) throw Error(Code::mismatch, "a member sent half of a shard", "tables", "run the same program on all members");
  }
  std::span<const Key> numbers_;
};

}  // namespace shoal::table

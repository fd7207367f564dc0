#include "shoal/net/nodelist.h"

#include <charconv>
#include <cstdint>

#include "shoal/core/error.h"

namespace shoal::net {
namespace {

constexpr std::size_t kMaxNames = 65536;

class NodelistReader {
 public:
  explicit NodelistReader(std::string_view text) : text_(text) {}

  std::vector<std::string> names() {
    std::vector<std::string> all;
    do {
      for (std::string& name : one_pattern()) all.push_back(std::move(name));
      if (all.size() > kMaxNames) refuse();
    } while (take(','));
    if (at_ != text_.size()) refuse();
    return all;
  }

 private:
  // "rack[1-2]-n[01-03]"
  std::vector<std::string> one_pattern() {
    std::vector<std::string> names{""};
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (take('[')) {
        const std::vector<std::string> numbers = in_brackets();
        if (names.size() * numbers.size() > kMaxNames) refuse();
        std::vector<std::string> product;
        for (const std::string& name : names) {
          for (const std::string& number : numbers) product.push_back(name + number);
        }
        names = std::move(product);
      } else if (text_[at_] == ']') {
        refuse();
      } else {
        for (std::string& name : names) name += text_[at_];
        ++at_;
      }
    }
    if (at_ == from) refuse();
    return names;
  }

  // "01-03,7]": numbers as wide as the first of their range is written.
  std::vector<std::string> in_brackets() {
    std::vector<std::string> numbers;
    do {
      const std::string_view first = digits();
      const std::string_view last = take('-') ? digits() : first;
      const std::uint32_t from = number(first), to = number(last);
      if (to < from || to - from >= kMaxNames || numbers.size() > kMaxNames) refuse();
      for (std::uint32_t n = from; n <= to; ++n) {
        const std::string text = std::to_string(n);
        numbers.push_back(std::string(first.size() - std::min(first.size(), text.size()), '0') + text);
      }
    } while (take(','));
    if (!take(']')) refuse();
    return numbers;
  }

  std::string_view digits() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == from) refuse();
    return text_.substr(from, at_ - from);
  }
  std::uint32_t number(std::string_view digits) const {
    std::uint32_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{} || value > 1'000'000'000) refuse();
    return value;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void refuse() const {
    throw Error(Code::invalid_argument, "\"" + std::string(text_.substr(0, 200)) + "\" is not a list of hosts", "nodelist",
                "for example n[01-03,7],login2");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> expand_nodelist(std::string_view text) { return NodelistReader(text).names(); }

}  // namespace shoal::net

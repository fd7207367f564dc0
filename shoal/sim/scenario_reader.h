// Keys of a table of TOML, each with its place for complaints. Internal to scenario.cc. Lifetime: refers to the table and the file's name.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

// The parser of toml++ 3.3 asserts what damaged text can break, and lets clang optimise by it where assertions are off. What
// it does then is to refuse the text, so neither is done.
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expression) static_assert(true)
#include <toml++/toml.h>

namespace shoal::sim {

class Keys {
 public:
  Keys(const toml::table& table, std::string place, const std::string& file) : table_(table), place_(std::move(place)), file_(file) {}

  bool has(const char* key) {        // asks for it
    known_.insert(key);
    return table_.contains(key);
  }
  std::string text(const char* key, const std::optional<std::string>& otherwise = {}) {
    const toml::node* const node = find(key, otherwise.has_value());
    if (node == nullptr) return *otherwise;
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty() || value->size() > kMostText) refuse(key, fmt::format("must be text of 1 to {} bytes", kMostText));
    return *value;
  }
  std::uint32_t count(const char* key, std::uint32_t least, std::uint32_t most, std::optional<std::uint32_t> otherwise = {}) {
    const toml::node* const node = find(key, otherwise.has_value());
    return node == nullptr ? *otherwise : whole(key, *node, least, most);
  }
  void version(const char* key, std::int64_t known) {
    if (find(key, false)->value_exact<std::int64_t>() != known) refuse(key, fmt::format("only version {} is known", known));
  }
  std::vector<std::uint32_t> counts(const char* key, std::size_t most_values) {
    std::vector<std::uint32_t> values;
    for (const toml::node& node : list(key, most_values)) values.push_back(whole(key, node, 0, 1 << 16));
    return values;
  }
  std::vector<std::string> texts(const char* key, std::size_t most_values) {
    std::vector<std::string> values;
    for (const toml::node& node : list(key, most_values)) {
      const auto value = node.value_exact<std::string>();
      if (!value || value->empty() || value->size() > kMostText) refuse(key, "must be a list of texts");
      values.push_back(*value);
    }
    return values;
  }
  double number(const char* key, double least, double most, double otherwise) {
    const toml::node* const node = find(key, true);
    if (node == nullptr) return otherwise;
    const double value = node->is_number() ? *node->value<double>() : -1;
    if (!(value >= least && value <= most)) refuse(key, fmt::format("must be a number from {:g} to {:g}", least, most));
    return value;
  }
  // "64MB", "1gbit", "50us".
  double bytes(const char* key, const std::optional<std::string>& otherwise = {}) {
    return quantity(key, otherwise, [](const std::string& text) { return static_cast<double>(parse_size(text)); });
  }
  double rate(const char* key, const std::optional<std::string>& otherwise = {}) {
    return quantity(key, otherwise, [](const std::string& text) { return parse_rate(text); });
  }
  double seconds(const char* key, const std::optional<std::string>& otherwise = {}) {
    return quantity(key, otherwise, [](const std::string& text) { return Seconds(parse_duration(text)).count(); });
  }
  // Throws if there is a key that nobody has asked for.
  void finish() const {
    for (const auto& [key, value] : table_) {
      if (!known_.contains(std::string(key.str()))) refuse(std::string(key.str()), "is no key here", fmt::format("{}", fmt::join(known_, ", ")));
    }
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& hint = {}) const {
    const std::string full = place_.empty() ? key : key.empty() ? place_ : place_ + "." + key;
    throw Error(Code::invalid_argument, full.empty() ? what : full + ": " + what, file_, hint);
  }

 private:
  static constexpr std::size_t kMostText = 1024;

  const toml::node* find(const char* key, bool optional) {
    known_.insert(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr && !optional) refuse(key, "is missing");
    return node;
  }
  const toml::array& list(const char* key, std::size_t most_values) {
    const toml::array* const values = find(key, false)->as_array();
    if (values == nullptr || values->size() > most_values) refuse(key, fmt::format("must be a list of at most {} values", most_values));
    return *values;
  }
  std::uint32_t whole(const char* key, const toml::node& node, std::uint32_t least, std::uint32_t most) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < least || *value > most) refuse(key, fmt::format("must be a whole number from {} to {}", least, most));
    return static_cast<std::uint32_t>(*value);
  }
  template <class Parse>
  double quantity(const char* key, const std::optional<std::string>& otherwise, const Parse& parse) {
    const std::string value = text(key, otherwise);
    try {
      return parse(value);
    } catch (const Error& error) {
      refuse(key, error.fact(), error.hint());
    }
  }

  const toml::table& table_;
  const std::string place_;
  const std::string& file_;
  std::set<std::string> known_;
};

}  // namespace shoal::sim
